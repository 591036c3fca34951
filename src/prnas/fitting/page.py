"""The whole story of a fit as one page: FIT/fit.html. All that comes from files is escaped."""

import base64
import io
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from prnas.data.dataset import DataSet
from prnas.fitting.folder import FitState
from prnas.fitting.names import CARD, EXPORTS, SEARCH
from prnas.fitting.plan import ENOUGH_TRAINING
from prnas.fitting.verdict import in_percent
from prnas.io.atomic import write_atomically
from prnas.models.confusions import confusions
from prnas.report.static_page import static_page
from prnas.runs.names import REPORT

THUMBNAIL = 96  # Pixels of a small picture's side, at most.
MOST_IN_MATRIX = 40  # Classes; of more, a matrix is unreadable.
MOST_MISTAKES = 12  # Lines of the table of mistakes.
RIGHT_LEVELS, WRONG_LEVELS = (0.25, 0.6, 0.85), (0.03, 0.1, 0.3)  # Shares of a row.
SIDE = 260  # Side of the reliability diagram.


def write_fit_page(
    path: Path,
    state: FitState,
    results: Mapping[str, Any],
    data: DataSet,
    exported: Iterable[str],
) -> None:
    wrong = [int(image["index"]) for image in results["wrong"]]
    pictures = thumbnails(data, wrong)
    title = f"{path.resolve().parent.name} · prnas fit"
    body = page_body(path.parent, state, results, pictures, list(exported))
    write_atomically(path, static_page(title, body).encode())


def thumbnails(data: DataSet, indices: Sequence[int]) -> list[str]:
    """Test images as data addresses, as the network sees them."""
    if not indices:
        return []
    pixels = data.test.fetch(torch.tensor(indices)).cpu().numpy()
    addresses: list[str] = []
    for image in pixels:
        layers = image[0] if image.shape[0] in (1, 2) else image[:3].transpose(1, 2, 0)
        picture = Image.fromarray(layers)
        if max(picture.size) > THUMBNAIL:
            picture.thumbnail((THUMBNAIL, THUMBNAIL))
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        addresses.append(f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}")
    return addresses


def page_body(
    folder: Path,
    state: FitState,
    results: Mapping[str, Any],
    pictures: Sequence[str],
    exported: Sequence[str],
) -> str:
    """The markup between head and foot."""
    sections = [
        _head(folder, state, results),
        "<main>",
        _data_section(state),
        _search_section(state, results.get("search")),
        _networks_section(results),
        _confusion_section(results),
        _gallery_section(results, pictures),
        _calibration_section(results),
        _use_section(folder, exported),
        "</main>",
    ]
    return "\n".join(sections)


def _name(text: str, most: int = 200) -> str:
    """A name from a file: its own direction, control characters spelt out."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:most])
    return f"<bdi>{escape(shown)}</bdi>"


def _section(key: str, title: str, *inner: str) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{escape(title)}'
        f"</h2>\n{chr(10).join(inner)}\n</section>"
    )


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{text}</li>' for text in texts)}</ul>"


def _table(label: str, headings: Sequence[str], rows: Sequence[str], kind: str) -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def _head(folder: Path, state: FitState, results: Mapping[str, Any]) -> str:
    answers = "".join(f"<p>{_name(text, 2000)}</p>" for text in results["sentences"])
    sections = ("data", "search", "networks", "confusion", "wrong", "calibration", "use")
    links = " · ".join(f'<a href="#{section}">{section}</a>' for section in sections)
    return (
        f'<header><p class="kind">fit</p><h1>{_name(folder.resolve().name)}</h1>'
        f'<p class="description">{state.request.minutes:g} minutes, seed {state.request.seed}, '
        f"images: {_name(state.request.data)}</p>"
        f'<div class="answer story">{answers}</div>'
        f'<nav aria-label="Parts of this page">{links}</nav></header>'
    )


def _data_section(state: FitState) -> str:
    chosen = [f"{escape(what)}: {_name(why, 2000)}" for what, why in state.plan.reasons]
    return _section(
        "data",
        "The data, and what was chosen for it",
        '<div class="story">',
        _list(_name(text, 2000) for text in state.look),
        "<p>What was chosen, and why:</p>",
        _list(chosen),
        "</div>",
    )


def _search_section(state: FitState, search: Mapping[str, Any] | None) -> str:
    """`search`: what it ended with; fits of an earlier state do not have it."""
    plan = state.plan
    planned = f"Planned for {plan.search.seconds / 60:.1f} of {state.request.minutes:g} minutes."
    if search is not None:
        planned += f" It had {search['epochs']} epochs in {search['cycles']} cycles."
    report = f'<a href="{SEARCH}/{REPORT}">Its own report</a> has curves and drawn cells.'
    return _section(
        "search",
        "The search",
        '<div class="story">',
        f"<p>{planned} {report}</p>",
        *(_found(search) if search is not None else []),
        "</div>",
    )


def _found(search: Mapping[str, Any]) -> list[str]:
    """The operations of the cells that were found, and how sure that is."""
    cells = [f"{escape(role)} cell: {_name(text, 2000)}" for role, text in search["cells"].items()]
    sure = search["how_sure"]
    more = "" if not sure or sure.startswith("sure") else " More minutes or more images may help."
    said = f"<p>How sure its decisions are: {_name(sure, 2000)}{more}</p>" if sure else ""
    these = "this cell" if len(cells) == 1 else "these cells"
    return [f"<p>It found {these}:</p>", _list(cells), said]


def _networks_section(results: Mapping[str, Any]) -> str:
    networks = results["networks"]
    lowest = min(network["interval_95"][0] for network in networks)
    rows = [
        _network_row(network, network["name"] == results["best"], lowest) for network in networks
    ]
    headings = [
        "Network", "Test accuracy", "95 % interval", "", "Validation", "Parameters",
        "MACs", "ms an image", "Epochs", "Time",
    ]  # fmt: skip
    headings[3] = '<span class="unseen">Interval as a picture</span>'
    labels = {network["name"]: _name(network["label"]) for network in networks}
    compared = [
        f"Found against {labels[pair['other']]}: test images that only the found network has "
        f"right: {pair['only_found']}, only the other: {pair['only_other']}; "
        f"p = {pair['corrected']:.2g} (McNemar, exact, corrected for the number of comparisons)."
        for pair in results["compared"]
    ]
    lead = (
        f"All were trained on the same images, {_time_of_each(networks)}. The validation images "
        "chose each network's best epoch, and the best network; the held-out test images chose "
        "nothing."
    )
    return _section(
        "networks",
        "The networks side by side",
        f'<p class="lead">{lead}</p>',
        _table("The networks side by side", headings, rows, "networks"),
        f'<div class="story">{_list(compared)}</div>' if compared else "",
    )


def _time_of_each(networks: Sequence[Mapping[str, Any]]) -> str:
    """'each for about the same time', as far as that is so."""
    epochs = [network["epochs"] for network in networks]
    minutes = [network["seconds"] / 60 for network in networks]
    if all(number == ENOUGH_TRAINING for number in epochs):
        return f"each for {ENOUGH_TRAINING} epochs, which are enough"
    if ENOUGH_TRAINING in epochs:
        return (
            "each with the same time, of which a fast network took less: after "
            f"{ENOUGH_TRAINING} epochs it ends"
        )
    if max(minutes) > 1.2 * min(minutes):
        took = f"{min(minutes):.1f} to {max(minutes):.1f} minutes"
        return f"each with the same planned time: in fact they took {took}"
    return "each for about the same time"


def _network_row(network: Mapping[str, Any], best: bool, lowest: float) -> str:
    low, high = network["interval_95"]
    mark = " <strong>the best</strong>" if best else ""
    link = f'<a href="{escape(network["name"])}/{REPORT}">{_name(network["label"])}</a>{mark}'
    cells = [
        f"{in_percent(network['accuracy'])} ({network['correct']:,} of {network['images']:,})",
        f"{in_percent(low)} to {in_percent(high)}",
        _interval(network["accuracy"], low, high, lowest),
        in_percent(network["validation"]),
        f"{network['parameters']:,}",
        f"{network['macs']:,}",
        f"{network['latency']:.2g}{'' if network['within_limits'] else ' (over a limit)'}",
        f"{network['epochs']} (kept {network['kept_epoch']})",
        f"{network['seconds'] / 60:.1f} min",
    ]
    tds = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{"best" if best else "other"}"><th scope="row">{link}</th>{tds}</tr>'


def _interval(middle: float, low: float, high: float, lowest: float) -> str:
    begin = max(0.0, lowest - 0.02)

    def x(share: float) -> str:
        return f"{4 + 132 * (share - begin) / max(1 - begin, 1e-9):.1f}"

    return (
        '<svg width="140" height="16" aria-hidden="true">'
        '<line class="span-axis" x1="4" x2="136" y1="14" y2="14"/>'
        f'<line class="span-line" x1="{x(low)}" x2="{x(high)}" y1="7" y2="7"/>'
        f'<circle class="span-dot" cx="{x(middle)}" cy="7" r="4"/></svg>'
    )


def _confusion_section(results: Mapping[str, Any]) -> str:
    names, counts = results["class_names"], results["confusion"]
    rows = [
        f'<tr><th scope="row">{_name(names[confusion.true])}</th>'
        f"<td>{_name(names[confusion.predicted])}</td><td>{confusion.count:,}</td><td>{in_percent(confusion.share)}</td></tr>"
        for confusion in confusions(counts, MOST_MISTAKES)
    ]
    headings = ["Class", "taken for", "times", "of its images"]
    table = _table("Confused most", headings, rows, "worst") if rows else "<p>No mistakes.</p>"
    inner = [f"<div><h3>Confused most</h3>{table}</div>"]
    if len(names) <= MOST_IN_MATRIX:
        inner.insert(0, _matrix(names, counts))
    return _section(
        "confusion",
        "Confusion matrix of the best network",
        f'<div class="columns">{"".join(inner)}</div>',
    )


def _matrix(names: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    rows: list[str] = []
    for row, line in enumerate(counts):
        total = max(sum(line), 1)
        cells = [_matrix_cell(count, total, row == column) for column, count in enumerate(line)]
        rows.append(f'<tr><th scope="row">{_name(names[row], 40)}</th>{"".join(cells)}</tr>')
    headings = ["true \\ taken for", *(_name(name, 40) for name in names)]
    return _table("Confusion matrix: rows are true classes", headings, rows, "matrix")


def _matrix_cell(count: int, total: int, right: bool) -> str:
    if not count:
        return "<td></td>"
    levels = RIGHT_LEVELS if right else WRONG_LEVELS
    level = 1 + sum(count / total > bound for bound in levels)
    return f'<td class="{"right" if right else "wrong"}-{level}">{count:,}</td>'


def _gallery_section(results: Mapping[str, Any], pictures: Sequence[str]) -> str:
    names, wrong = results["class_names"], results["wrong"]
    if not wrong:
        return _section("wrong", "Pictures that it got wrong", "<p>None of the test images.</p>")
    figures: list[str] = []
    for image, picture in zip(wrong, pictures, strict=True):
        true, taken = _name(names[image["class"]], 60), _name(names[image["taken_for"]], 60)
        alt = escape(f"A test image of class {names[image['class']]:.60}")
        figures.append(
            f'<li><figure><img src="{picture}" alt="{alt}" width="96" height="96">'
            f"<figcaption><b>{true}</b> taken for <b>{taken}</b>, "
            f"{in_percent(image['confidence'])} sure (of its own class: "
            f"{in_percent(image['true_probability'])})"
            f'<span class="file">{_name(image["name"], 120)}</span></figcaption></figure></li>'
        )
    mistakes = sum(map(sum, results["confusion"])) - sum(
        line[index] for index, line in enumerate(results["confusion"])
    )
    lead = f"{len(wrong)} of {mistakes:,} mistakes, those that it was surest of; as it sees them."
    return _section(
        "wrong",
        "Pictures that it got wrong",
        f'<p class="lead">{lead}</p>',
        f'<ul class="gallery">{"".join(figures)}</ul>',
    )


def _calibration_section(results: Mapping[str, Any]) -> str:
    bins, error = results["calibration"]["bins"], results["calibration"]["ece"]
    rows = [
        f'<tr><th scope="row">{in_percent(bin_["low"])} to {in_percent(bin_["high"])}</th>'
        f"<td>{bin_['images']:,}</td><td>{in_percent(bin_['confidence'])}</td>"
        f"<td>{in_percent(bin_['accuracy'])}</td></tr>"
        for bin_ in bins
    ]
    headings = ["Confidence", "images", "mean confidence", "right"]
    lead = (
        f"Where it says 80 %, is it right in 80 of 100 cases? The expected calibration error is "
        f"{100 * error:.1f} %: so far apart are confidence and accuracy on average."
    )
    return _section(
        "calibration",
        "Calibration",
        f'<p class="lead">{lead}</p>',
        f'<div class="columns">{_diagram(bins)}'
        f"{_table('Confidence and accuracy', headings, rows, 'bins')}</div>",
    )


def _diagram(bins: Sequence[Mapping[str, Any]]) -> str:
    left, top = 34, 8
    bars: list[str] = []
    for bin_ in bins:
        x, width = left + SIDE * bin_["low"], SIDE * (bin_["high"] - bin_["low"])
        height = SIDE * bin_["accuracy"]
        bars.append(
            f'<rect class="bar" x="{x + 1:.1f}" y="{top + SIDE - height:.1f}" '
            f'width="{width - 2:.1f}" height="{height:.1f}"/>'
        )
        level = top + SIDE * (1 - bin_["confidence"])
        line = f"M{x + 1:.1f} {level:.1f}H{x + width - 1:.1f}"
        bars.append(f'<path class="mark" d="{line}" stroke-width="2"/>')
    labels = "".join(
        f'<text x="{left + SIDE * share:.0f}" y="{top + SIDE + 15}" text-anchor="middle">'
        f"{100 * share:.0f}</text>"
        f'<text x="{left - 5}" y="{top + SIDE * (1 - share) + 4:.0f}" text-anchor="end">'
        f"{100 * share:.0f}</text>"
        for share in (0.0, 0.5, 1.0)
    )
    width, height = left + SIDE + 14, top + SIDE + 34
    return (
        f'<svg class="reliability" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" aria-label="Reliability diagram: bars are the share that '
        'is right, marks the mean confidence; the table beside it has the numbers">'
        f'<rect class="frame" x="{left}" y="{top}" width="{SIDE}" height="{SIDE}"/>'
        f'<line class="ideal" x1="{left}" y1="{top + SIDE}" x2="{left + SIDE}" y2="{top}"/>'
        f"{''.join(bars)}{labels}"
        f'<text x="{left + SIDE / 2}" y="{height - 4}" text-anchor="middle">confidence (%); bars: '
        "right (%)</text></svg>"
    )


def _use_section(folder: Path, exported: Sequence[str]) -> str:
    quoted = shlex.quote(str(folder))
    files = [f'<a href="{CARD}">{CARD}</a>: the model card']
    files += [f'<a href="{EXPORTS}/{name}">{EXPORTS}/{escape(name)}</a>' for name in exported]
    return _section(
        "use",
        "Use it",
        f"<p><code>prnas predict {_name(quoted, 4000)} picture.jpg</code></p>",
        _list(files),
    )
