"""The page itself: a fixed template, our own script and style, and the data as inert JSON."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

# Modules in an order in which each comes after those whose values it needs at once.
SCRIPTS = (
    *("dom.js", "format.js", "picture.js", "scale.js", "chart.js", "charts.js", "timeline.js"),
    *("head.js", "tree.js", "cells.js", "truth.js", "confusion.js", "compare.js", "dots.js"),
    *("evaluations.js", "study.js", "live.js", "main.js"),
)
_ASSETS = files("prnas.report") / "assets"
STYLES = ("base.css", "charts.css", "cells.css", "study.css", "print.css")


def render(data: Mapping[str, Any], live: bool = False) -> str:
    """The whole page. `live`: it asks the server it came from for news."""
    head, middle, tail = _template(live)
    return f"{head}{escaped_json({**data, 'live': live})}{middle}{tail}"


def escaped_json(data: Any) -> str:
    """JSON in ASCII that no HTML parser can mistake for markup."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(live: bool) -> str:
    """Our script and our style, by their checksums; no network but the live page's own server."""
    rules = [
        "default-src 'none'",
        f"script-src '{_checksum(_joined(SCRIPTS))}'",
        f"style-src '{_checksum(_joined(STYLES))}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*rules, "connect-src 'self'"] if live else rules)


@cache
def _template(live: bool) -> tuple[str, str, str]:
    """The page around its data. Nothing in it depends on a run."""
    page = (_ASSETS / "page.html").read_text(encoding="utf-8")
    page = page.replace("{{policy}}", policy(live)).replace("{{style}}", _joined(STYLES))
    head, rest = page.split("{{data}}")
    middle, tail = rest.split("{{script}}")
    return head, middle + _joined(SCRIPTS), tail


@cache
def _joined(names: tuple[str, ...]) -> str:
    text = "\n".join((_ASSETS / name).read_text(encoding="utf-8").strip() for name in names)
    if names == SCRIPTS:
        # One script, whose checksum the policy can name: the modules share a scope.
        text = re.sub(r"^(import [^;]*;\n|export )", "", text, flags=re.MULTILINE)
        text = f'(() => {{\n"use strict";\n{text}\n}})();'
    return f"\n{text}\n"


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
