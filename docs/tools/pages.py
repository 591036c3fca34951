"""All pages that are written before Sphinx reads: `python -m docs.tools.pages FOLDER`."""

import sys
from functools import cache
from pathlib import Path

from docs.tools import command_pages, config_pages, recipe_page


@cache
def pages() -> dict[str, str]:
    """The text of each page by its name, a path without its ending."""
    return {**command_pages.pages(), **config_pages.pages(), "recipes": recipe_page.page()}


def write_pages(folder: Path) -> None:
    """Write what has changed, so that Sphinx reads only that again; remove what is no page now."""
    wanted = {folder / f"{name}.md": text for name, text in pages().items()}
    for path in set(folder.rglob("*.md")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
