"""A small search and a small training that have everything, and what they end with undisturbed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prnas.config.sections import RunConfig
from prnas.io.yaml_files import dump_yaml
from tests.support.settings import small_config, small_training, write_images
from torture.children import Child, start


@dataclass(frozen=True)
class Kind:
    """One of the commands that run for long."""

    command: str
    folder: Path  # where configs and references are
    config: Path

    @property
    def reference(self) -> Path:
        return self.folder / "runs" / f"reference-{self.command}"

    def begin(
        self, name: str, prepare: Callable[[], None] = lambda: None, *options: object
    ) -> Child:
        return start([*self.arguments(name), *options], self.folder, prepare)

    def arguments(self, name: str) -> list[object]:
        return [self.command, *self._given(), "--name", name]

    def _given(self) -> list[object]:
        if self.command == "search":
            return [self.config]
        return ["pr-darts-dl1", self.config]

    def go_on(
        self, run: Path, prepare: Callable[[], None] = lambda: None, *options: object
    ) -> Child:
        return start([self.command, "--resume", run, *options], self.folder, prepare)


COMMANDS = ("search", "retrain")


def kinds(
    folder: Path, every_minutes: float = 1e-6, commands: Sequence[str] = COMMANDS
) -> list[Kind]:
    """Each with its undisturbed run; `every_minutes` between checkpoints."""
    images = write_images(folder / "images.npz")
    checkpoints = {"every_minutes": every_minutes}
    configs: dict[str, RunConfig] = {
        "search": small_config(images, checkpoints=checkpoints),
        "retrain": small_training(images, checkpoints=checkpoints),
    }
    made: list[Kind] = []
    for command in commands:
        path = folder / f"{command}.yaml"
        path.write_text(dump_yaml(configs[command].to_data()), encoding="utf-8")
        kind = Kind(command, folder, path)
        child = kind.begin(kind.reference.name)
        assert child.wait() == 0, child.said
        made.append(kind)
    return made
