"""The output of `prnas doctor`, for people and for bug reports."""

from pathlib import Path

from prnas.runs.diagnosis import IN_THE_PACKAGE, Facts, Folder, advice, findings
from prnas.terminal.amounts import counted
from prnas.terminal.output import facts as pairs_of
from prnas.terminal.output import show, show_heading, show_prose, table


def show_diagnosis(facts: Facts) -> None:
    """The facts, what works, and what to do. The home folder is shown as ~."""
    show_heading(f"prnas {facts.prnas}")
    show(pairs_of([(name, _short(value)) for name, value in _facts(facts)]))
    show("")
    show_heading("What works here")
    rows = [
        [finding.what, "yes" if finding.works else "no", _short(finding.why)]
        for finding in findings(facts)
    ]
    show(table(["what", "works", "note"], rows))
    lines = advice(facts)
    show("")
    show_heading("Advice")
    if not lines:
        show("nothing is amiss")
    for line in lines:
        show_prose(f"- {_short(line)}", indent="  ")


def _facts(facts: Facts) -> list[tuple[str, str]]:
    processor, memory, torch = facts.processor, facts.memory, facts.torch
    cores = counted(processor.cores, "core")
    if processor.usable != processor.cores:
        cores += f", of which {processor.usable} may be used"
    features = f" ({', '.join(processor.features)})" if processor.features else ""
    git = facts.git
    source = f", commit {git['commit'][:10]}{'' if git['clean'] else ', changed'}" if git else ""
    pairs = [
        ("from", f"{facts.installed_in}{source}"),
        ("python", f"{facts.python} on {facts.platform}"),
        ("pytorch", f"{torch.version or 'not installed'}, for {torch.built_for}"),
        (
            "packages",
            ", ".join(f"{package.name} {package.version or '-'}" for package in facts.packages),
        ),
        ("processor", f"{processor.name}, {cores}{features}"),
    ]
    if processor.load is not None:
        pairs.append(("load", f"{processor.load:.1f} in the last minute"))
    if memory is not None:
        pairs.append(("memory", f"{_size(memory.total)}, of which {_size(memory.free)} are free"))
    for device in torch.devices:
        size = "" if device.memory is None else f", {_size(device.memory)}"
        pairs.append((device.kind, f"{device.name}{size}"))
    pairs += [(folder.role, _folder(folder)) for folder in facts.folders]
    pairs.append(("images", _images(facts)))
    pairs.append(("encoding", facts.encoding))
    pairs += [(name, value) for name, value in facts.environment.items()]
    return pairs


def _folder(folder: Folder) -> str:
    state = "" if folder.exists else ", not there yet"
    if folder.problem is not None:
        return f"{folder.path}{state}; it {folder.problem}"
    free = "" if folder.free is None else f", {_size(folder.free)} free"
    return f"{folder.path}{state}, writable{free}"


def _images(facts: Facts) -> str:
    """The sets that have names: where they are, and which would have to be downloaded."""
    here = [
        f"{images.name} {_where(images.where)}"
        for images in facts.images
        if images.where is not None
    ]
    absent = [images.name for images in facts.images if images.where is None]
    later = f"not here, downloaded on first use: {', '.join(absent)}"
    return "; ".join([*here, *([later] if absent else [])])


def _where(where: str) -> str:
    return where if where == IN_THE_PACKAGE else f"in {where}"


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _short(text: str) -> str:
    """The text without the name of the user's home folder."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return text
    return text.replace(f"{home}/", "~/") if len(home) > 1 else text
