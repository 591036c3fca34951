"""A page that is plain HTML: no script, nothing from the network, pictures inside it."""

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

STYLES = ("base.css", "fit.css", "print.css")
_ASSETS = files("prnas.report") / "assets"


def static_page(title: str, body: str) -> str:
    """The whole page. `body` is markup, `title` is text."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body data-ready="true">\n<div id="page">\n{body}\n</div>\n</body>\n</html>\n'
    )


@cache
def _style() -> str:
    joined = "\n".join((_ASSETS / name).read_text(encoding="utf-8").strip() for name in STYLES)
    return f"\n{joined}\n"
