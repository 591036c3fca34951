"""The fenced blocks of Markdown pages: programs, files and commands that readers copy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_SAVED_AS = re.compile(r"as `([\w./-]+)`:\s*$")
_NUMBER = re.compile(r"[+-]?\d[\d,.]*")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    file: str | None  # the name that the sentence before tells to save it as

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def commands(self) -> list[tuple[str, str]]:
        """What is typed, and what the page shows after it: of a console; of a script, its lines."""
        if self.language == "sh":
            return [(line, "") for line in _joined(self.text) if line and not line.startswith("#")]
        _, *entries = re.split(r"^\$ ", self.text, flags=re.MULTILINE)
        pairs = [entry.partition("\n") for entry in entries]
        return [(command, shown) for command, _, shown in pairs]


def _joined(text: str) -> list[str]:
    return text.replace("\\\n", " ").splitlines()


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        saved = _SAVED_AS.search(before)
        line = before.count("\n") + 1
        blocks.append(Block(page, line, match[1].strip(), match[2], saved[1] if saved else None))
    return blocks


def masked(text: str, words: Sequence[str] = ()) -> str:
    """Without what differs from run to run: numbers, marks, these words, the width of tables."""
    for word in words:
        text = text.replace(word, "#")
    return " ".join(_NUMBER.sub("#", text.replace(" * ", " ")).split())


def assert_shown(shown: str, output: str, words: Sequence[str] = ()) -> None:
    """What a page shows was printed, but for what is masked; `...` stands for anything."""
    if not shown.strip():
        return
    printed, position = masked(output, words), 0
    for excerpt in shown.split("..."):
        wanted = masked(excerpt, words)
        start = printed.find(wanted, position)
        assert start >= 0, f"not printed: {wanted}\n\nbut:\n{output}"
        position = start + len(wanted)
