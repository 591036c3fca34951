"""Values and strings that nobody expects, and pickles that would tell if they were loaded."""

import os
import pickle
from pathlib import Path
from typing import Any

VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**99),
    *(1.5, -0.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), -float("inf")),
    *(
        "",
        "conv",
        "zero",
        "conv 9999x9999",
        "1e999",
        "\0",
        "../../..",
        "/etc/passwd",
        "~",
        "~nobody",
    ),
    *([], {}, [[[[]]]], [None], {"type": "conv"}, {"": None}, list(range(200))),
    *("<script>\N{RIGHT-TO-LEFT OVERRIDE}", "x" * 10_000, "\x1b[2J", "\ud800", "a\nb"),
]
NUMBERS = [
    *(b"0", b"-1", b"1", b"255", b"256", b"65536", b"4294967296", b"9223372036854775808"),
    *(b"1e400", b"-1e400", b"nan", b".inf", b"1e-400", b"0x" + b"f" * 5000, b"9" * 5000, b"00"),
    *(b"1:1:1:1", b"0o7", b"0b1", b"1_000", b"1.5", b"-0"),
]
WORDS = [
    *(b"null", b"true", b"[]", b"{}", b'""', b"*a", b"&a x", b"!!binary xx", b"!!set {a}", b"? "),
    *(
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n",
        b"\t",
        b"---\n",
        b"<<: ",
    ),
]


def yaml_programs(canary: Path) -> list[bytes]:
    """YAML that would make a file, if anything in it were obeyed."""
    command = f"touch {canary}".encode()
    return [
        b"!!python/object/apply:os.system ['" + command + b"']",
        b"!!python/object/new:os.system ['" + command + b"']",
        b"!!python/object/apply:subprocess.check_call [[touch, " + str(canary).encode() + b"]]",
        b"!!python/name:os.system",
        b"!!python/module:antigravity",
    ]


class _Toucher:
    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._canary),)


def pickled(canary: Path, protocol: int = 2) -> bytes:
    """A pickle that makes a folder when it is loaded."""
    return pickle.dumps(_Toucher(canary), protocol)
