// Several runs: curves over each other, results over seeds, genotypes side by side.
import { swatch } from "./chart.js";
import { ChartGroup } from "./charts.js";
import { confusionSection } from "./confusion.js";
import { el, fill, name, plain, svg, table } from "./dom.js";
import { duration, NONE, plural, show, spread } from "./format.js";
import { drawPicture } from "./picture.js";
import { ticks } from "./scale.js";
import { Timeline } from "./timeline.js";

const HEADINGS = { search: "Searches over each other", training: "Trainings over each other" };

// The runs of a kind: every plot has a line for each of them.
export class CompareView {
  constructor(kind) {
    this.kind = kind;
    this.group = new ChartGroup(`${kind}-`);
    this.timeline = new Timeline(this.group);
    this.keys = el("div", { class: "run-keys" });
    this.names = [];
    this.node = el("section", { class: "curves compared" });
  }

  update(curves) {
    const { group } = this;
    const runs = curves.sections[0].plots[0].lines;
    const names = runs.map((line) => line.label);
    // A button that is there already stays, and keeps the focus.
    const buttons = runs.map((line, i) =>
      this.names[i] === line.label ? this.keys.children[i] : this.runButton(line, i),
    );
    if (names.join("\n") !== this.names.join("\n")) {
      const focused = document.activeElement;
      this.keys.replaceChildren(...buttons);
      if (buttons.includes(focused)) focused.focus({ preventScroll: true });
    }
    this.names = names;
    group.update(curves);
    if (this.node.firstChild) return;
    fill(this.node, [
      el("h2", null, HEADINGS[this.kind]),
      group.said,
      el("div", { class: "sticky" }, this.keys, this.timeline.node),
      group.nodes(curves.sections),
    ]);
  }

  runButton(line, number) {
    const { hidden } = this.group;
    const toggle = (event) => {
      if (!hidden.delete(line.label)) hidden.add(line.label);
      event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(line.label)));
      this.group.redraw();
    };
    return el(
      "button",
      {
        type: "button",
        class: "legend-item",
        "data-run": number,
        "--c": `var(--${line.color})`,
        "aria-pressed": String(!hidden.has(line.label)),
        title: "Show or hide this run",
        onclick: toggle,
      },
      swatch(line, 20),
      name(line.label, { class: "legend-name" }),
    );
  }
}

// --- results

// In a table a name may break after a folder's.
function runCell(text) {
  const parts = text.match(/[^/]*\/|[^/]+$/g) || [text];
  return el(
    "bdi",
    { class: "run-cell" },
    parts.map((part, i) => [i ? el("wbr") : null, part]),
  );
}

export function resultsSection({ comparison, runs, names }) {
  const kinds = comparison.results.map((result) => {
    const groups = comparison.groups.filter((group) => group.kind === result.kind);
    if (!groups.length) return null;
    return el(
      "div",
      null,
      resultsTable(result, groups, runs, names),
      result.note ? el("p", { class: "lead" }, result.note) : null,
      configsTable(result.configs, groups, names),
      result.strips.map((strip) => seedPlot(strip, result)),
    );
  });
  return el(
    "section",
    { class: "results-section" },
    el("h2", null, "Results"),
    kinds,
    el(
      "p",
      { class: "lead" },
      "Runs whose configs differ in nothing but the seed (and in where and how they were computed) ",
      "count as one config. Spread is the standard deviation of the sample; runs that have not ended ",
      "count in no mean.",
    ),
  );
}

function resultsTable(result, groups, runs, names) {
  const format = show[result.format];
  // What does not compare is not set side by side: then there is no column of results.
  const cells = (first, config, seed, value, ...rest) => [
    first,
    ...(groups.length > 1 ? [config] : []),
    seed,
    ...(result.comparable ? [value] : []),
    ...rest,
  ];
  const row = (group, i) => {
    const run = runs[i];
    const network = run.network || {};
    const value = `${format(run[result.key])}${run.ended ? "" : " (so far)"}`;
    return cells(
      runCell(names[i]),
      group.letter,
      run.seed ?? NONE,
      value,
      show.millions(network.parameters),
      show.millions(network.macs),
      duration(run.seconds),
    );
  };
  const mean = ({ letter, ended, values, runs: all }) =>
    cells(
      el(
        "span",
        { class: "run-cell mean-of" },
        `mean ± sd, n = ${ended}${ended < all.length ? ` of ${all.length}` : ""}`,
      ),
      letter,
      "",
      spread(values[result.key], format),
      spread(values.parameters, show.millions),
      spread(values.macs, show.millions),
      spread(values.seconds, duration),
    );
  const rows = groups.flatMap((group) => [
    ...group.runs.map((i) => row(group, i)),
    ...(group.runs.length > 1 ? [mean(group)] : []),
  ]);
  const made = table(cells("Run", "Config", "Seed", result.label, "Parameters", "MACs", "Time"), rows, "results");
  for (const cell of made.querySelectorAll(".mean-of")) cell.closest("tr").classList.add("mean");
  return made;
}

// Which config is which: its runs, its data and setting, and whatever differs.
function configsTable(differences, groups, names) {
  if (!differences.length) return null;
  const runs = groups.map((group) => runsOf(group.runs.map((i) => names[i])));
  const rows = differences.map(([label, values]) => [
    runCell(label),
    ...values.map((value) => name(value, { class: "config-value" })),
  ]);
  const headings = ["", ...groups.map((group) => `Config ${group.letter}`)];
  return el(
    "div",
    { class: "configs-box" },
    el("h3", null, "What the configs differ in"),
    table(headings, [["Runs", ...runs], ...rows], "configs"),
  );
}

// "group (3 runs)" of a folder's seeds; other runs by their names, as far as there is room.
function runsOf(names) {
  const folders = new Set(names.map((text) => text.slice(0, Math.max(0, text.lastIndexOf("/")))));
  const [folder] = folders;
  if (names.length === 1) return runCell(names[0]);
  if (folders.size === 1 && folder) return [runCell(folder), ` (${plural(names.length, "run")})`];
  return [runCell(names.slice(0, 3).join(", ")), names.length > 3 ? ` … (${plural(names.length, "run")})` : null];
}

// Every seed's result as a dot, their mean as a line, one standard deviation as a band.
function seedPlot(strip, { label, format, range: [from, to] }) {
  const { letter, dots, mean, sd } = strip;
  const width = 560;
  const height = 74;
  const x = (value) => 32 + ((value - from) / (to - from)) * (width - 64);
  const marks = dots.map(([seed, value], i) =>
    svg(
      "circle",
      { cx: x(value), cy: 30 + ((i % 3) - 1) * 7, r: 4.5, class: "seed-dot" },
      svg("title", null, `seed ${seed ?? "?"}: ${show[format](value)}`),
    ),
  );
  const axis = ticks(from, to, 6).map((value) =>
    svg("text", { class: "tick", x: x(value), y: height - 6, "text-anchor": "middle" }, show[format](value)),
  );
  const whose = letter ? `config ${letter}` : "all seeds";
  return el(
    "figure",
    { class: "seed-plot" },
    el("figcaption", null, `${label} over seeds, ${whose}: ${spread(strip, show[format])}`),
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label} of every seed` },
      svg("rect", { class: "seed-band", x: x(mean - sd), y: 10, width: x(mean + sd) - x(mean - sd), height: 40 }),
      svg("path", { class: "seed-mean", d: `M${x(mean)} 6V54` }),
      svg("path", { class: "axis", d: `M32 54H${width - 32}` }),
      marks,
      axis,
    ),
  );
}

// --- genotypes and confusion

export function genotypesSection({ comparison, runs, names }) {
  const drawn = [...runs.keys()].filter((i) => runs[i].genotype);
  if (!drawn.length) return null;
  const { distances } = comparison;
  const rows =
    distances &&
    drawn.map((row) => [
      runCell(names[row]),
      ...drawn.map((column) => (row === column ? "·" : (distances[row][column] ?? NONE))),
    ]);
  return el(
    "section",
    { class: "genotypes-section" },
    el("h2", null, "Genotypes side by side"),
    rows ? table(["Edit distance", ...drawn.map((i) => runCell(names[i]))], rows, "distances") : null,
    el(
      "p",
      { class: "lead" },
      "The edit distance is the least number of single edits (an operation, an input, a state in ",
      "the output) that make one genotype of the other, all its cells together.",
    ),
    el(
      "div",
      { class: "genotypes" },
      sameGenotypes(drawn, runs).map((same) => {
        const together = same.map((i) => names[i]).join(", ");
        const cells = Object.entries(runs[same[0]].genotype.pictures).map(([role, picture]) =>
          el(
            "div",
            { class: "scroll", tabindex: "0", role: "group" },
            el("p", { class: "caption" }, `${role} cell`),
            drawPicture(picture, `The ${role} cell of ${plain(together).slice(0, 80)}`),
          ),
        );
        return el("article", null, el("h3", null, name(together)), cells);
      }),
    ),
  );
}

// Runs that have the same cells (trainings of one genotype, say) are drawn once.
function sameGenotypes(drawn, runs) {
  const groups = new Map();
  for (const i of drawn) {
    const key = JSON.stringify(runs[i].genotype.pictures);
    groups.set(key, [...(groups.get(key) || []), i]);
  }
  return [...groups.values()];
}

// The matrices of each config's seeds, added up; the heading says whose they are.
export function confusionSections({ comparison }) {
  return comparison.confusions.map((confusion) => {
    const config = confusion.letter ? ` of config ${confusion.letter}` : "";
    const title =
      confusion.run === null
        ? `Confusion matrix${config}, ${plural(confusion.seeds, "seed")} together`
        : ["Confusion matrix of ", name(confusion.run)];
    return confusionSection(confusion, title);
  });
}
