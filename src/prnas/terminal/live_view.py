"""The lines at the foot of a terminal that follow a search."""

from rich.console import RenderableType

from prnas.config.search import SearchConfig
from prnas.runs.callbacks import Step, Validating
from prnas.terminal.amounts import percent
from prnas.terminal.run_lines import four_lines, line


def live_view(
    config: SearchConfig,
    pools: str,
    step: Step | None,
    validating: Validating | None,
    elapsed: str,
    width: int,
) -> RenderableType:
    if step is None:
        return line(f"preparing; {elapsed}")
    cycles = config.schedule.cycles
    where = f"cycle {step.cycle + 1}/{len(cycles)}"
    epoch = f"epoch {step.epoch + 1}/{cycles[step.cycle].epochs}"
    if step.grace:
        epoch += " (grace)"
    scores = f"loss {step.weights_loss:.4f}  accuracy {percent(step.weights_accuracy)} weights"
    if step.architecture_accuracy is not None:
        scores += f", {percent(step.architecture_accuracy)} architecture"
    return four_lines(
        f"{where}  {epoch}  step {step.step}  {pools}",
        scores,
        step,
        (validating, "validated") if validating else None,
        elapsed,
        width,
    )
