"""A page with every recipe and every study that comes with prnas, as its file has it."""

from prnas.config import recipes
from prnas.studies.config import ready_studies, ready_text

TITLES = {"search": "For `prnas search`", "retrain": "For `prnas retrain`"}


def page() -> str:
    parts = [
        "# Recipes",
        "Configs with a name. `prnas search NAME` runs one, `prnas recipes NAME` prints its file, "
        "and `prnas config NAME` prints it with every default.",
    ]
    for task, title in TITLES.items():
        parts.append(f"## {title}")
        for name in recipes.names(task):
            parts += [f"### `{name}`", _yaml(recipes.text(name))]
    parts.append("## For `prnas study`")
    for name in ready_studies():
        parts += [f"### `{name}`", _yaml(ready_text(name))]
    return "\n\n".join(parts) + "\n"


def _yaml(text: str) -> str:
    return f"```yaml\n{text.strip()}\n```"
