// Several runs: curves over each other, results over seeds, genotypes side by side.
const RUN_COLORS = ["blue", "red", "green", "orange", "purple", "sky", "gray"];

// A name for each run that no other has.
function uniqueNames(runs) {
  const given = new Set(runs.map((run) => run.name)), used = new Set();
  return runs.map((run) => {
    let text = run.name;
    for (let times = 2; used.has(text) || (text !== run.name && given.has(text)); times += 1) text = `${run.name} (${times})`;
    used.add(text);
    return text;
  });
}

// Dashes from the second run on: colours alone are not for everyone.
const styleOf = (place) => [RUN_COLORS[place % RUN_COLORS.length], DASHES[place % DASHES.length]];

function searchMetrics() {
  const column = (id, title, options) => ({ id, title, ...options, line: (run, ...style) => epochLine(run, id, ...style) });
  const accuracy = { format: show.percent, tick: show.share, height: 210 }, loss = { format: show.fixed(3), tick: show.short, height: 210 };
  const shares = { format: show.percent, tick: show.share, low: 0, high: 1 };
  const pool = (id, title, value, options) => ROLES.map((role) => ({ id: `${id}-${role}`, title: `${title}, ${role} cell`, ...options, line: (run, ...style) => poolLine(run, role, value, ...style) }));
  return {
    learning: [column("validation_accuracy", "Validation accuracy", accuracy), column("weights_accuracy", "Training accuracy", accuracy),
      column("validation_loss", "Validation loss", loss), column("weights_loss", "Training loss", loss)],
    machine: [column("lr", "Learning rate", { format: show.rate, low: 0 }), ...speedMetrics()],
    pools: [...["conv", "pool", "skip"].flatMap((type) => pool(type, `Share of ${type}`, (one) => one.types[type], shares)),
      ...pool("similarity", "Similarity", (one) => one.similarity, { format: show.fixed(2), low: 0, high: 1 }),
      ...ROLES.map((role) => ({ id: `parents-${role}`, title: `Probability of the parents, ${role} cell`, format: show.percent, tick: show.share, low: 0, line: (run, ...style) => parentLine(run, role, ...style) }))],
  };
}

function speedMetrics() {
  return SPEEDS.map((one) => ({ ...one, line: (run, ...style) => one.id === "batch" ? batchLine(run, ...style) : epochLine(run, one.id, ...style) }));
}

function trainingMetrics() {
  const column = (id, title, options) => ({ id, title, height: 210, ...options, line: (run, ...style) => epochLine(run, id, ...style) });
  const error = (of, title) => ({ id: `${of}_error`, title, height: 210, format: show.exactPercent, tick: show.share, low: 0, line: (run, ...style) => errorLine(epochLine(run, `${of}_accuracy`, ...style)) });
  const loss = { format: show.fixed(3), tick: show.short };
  return {
    learning: [error("test", "Test error"), error("training", "Training error"),
      column("test_loss", "Test loss", loss), column("training_loss", "Training loss", loss)],
    machine: [{ ...column("lr", "Learning rate", { format: show.rate, low: 0 }), height: 150 }, { ...column("drop_path", "Drop-path", { format: show.percent, tick: show.short, low: 0 }), height: 150 }, ...speedMetrics()],
  };
}

class CompareView {
  constructor(kind) {
    this.kind = kind;
    this.group = new ChartGroup();
    this.timeline = new Timeline(this.group);
    this.keys = el("div", { class: "run-keys" });
    this.names = [];
    this.metrics = kind === "search" ? searchMetrics() : trainingMetrics();
    this.node = el("section", { class: "curves" });
  }

  update(runs, names) {
    const { group } = this;
    // A button that is there already stays, and keeps the focus.
    const buttons = names.map((text, i) => this.names[i] === text ? this.keys.children[i] : this.runButton(text, i));
    if (names.join("\n") !== this.names.join("\n")) {
      const focused = document.activeElement;
      this.keys.replaceChildren(...buttons);
      if (buttons.includes(focused)) focused.focus({ preventScroll: true });
    }
    this.names = names;
    const same = this.kind === "search" && runs.every((run) => JSON.stringify(run.schedule) === JSON.stringify(runs[0].schedule));
    group.setEpochs(Math.max(...runs.map(plannedEpochs)), same ? cycleBands(runs[0]) : []);
    const made = {};
    for (const [part, metrics] of Object.entries(this.metrics)) {
      made[part] = metrics.map((metric) => group.chart({ ...metric, id: `${this.kind}-${metric.id}` }, runs.map((run, i) => metric.line(run, names[i], ...styleOf(i)))));
    }
    if (!this.node.firstChild) {
      fill(this.node, [el("h2", null, this.kind === "search" ? "Searches over each other" : "Trainings over each other"), group.said,
        el("div", { class: "sticky" }, this.keys, this.timeline.node), chartSection("Learning", null, made.learning, "pair no-legend"),
        made.pools ? chartSection("What the pools hold", null, made.pools, "no-legend") : null, chartSection("Speed and memory", null, made.machine, "five no-legend")]);
    }
  }

  runButton(text, place) {
    const { group } = this;
    const [color, dash] = styleOf(place);
    return el("button", { type: "button", class: "legend-item", "data-run": place, "--c": `var(--${color})`, "aria-pressed": String(!group.hidden.has(text)), title: "Show or hide this run",
      onclick: (event) => {
        if (!group.hidden.delete(text)) group.hidden.add(text);
        event.currentTarget.setAttribute("aria-pressed", String(!group.hidden.has(text)));
        group.redraw();
      } }, svg("svg", { width: 20, height: 8, class: "swatch", "aria-hidden": "true" }, svg("path", { d: "M0 4H20", "stroke-dasharray": dash })), name(text, { class: "legend-name" }));
  }
}

// --- results

// In a table a name may break after a folder's.
function runCell(text) {
  return el("bdi", { class: "run-cell" }, (text.match(/[^/]*\/|[^/]+$/g) || [text]).map((part, i) => [i ? el("wbr") : null, part]));
}

const KINDS = [["search", "Validation accuracy", "validation"], ["training", "Test error", "test_error"]];

// The groups of a kind, each with its letter if there are several.
function lettered(data, kind) {
  const groups = data.comparison.groups.filter((group) => group.kind === kind);
  return groups.map((group, number) => ({ ...group, letter: groups.length > 1 ? letter(number) : null }));
}

function resultsSection(data, names) {
  const sections = KINDS.map(([kind, label, result]) => {
    const groups = lettered(data, kind);
    if (!groups.length) return null;
    return el("div", null, resultsTable(data, names, groups, label, result), configsTable(data.comparison.configs[kind], groups, names),
      groups.filter((group) => group.ended > 1).map((group) => seedPlot(data, group, result, label, group.letter ? `config ${group.letter}` : "all seeds")));
  });
  return el("section", { class: "results-section" }, el("h2", null, "Results"), sections,
    el("p", { class: "lead" }, "Runs whose configs differ in nothing but the seed (and in what they ran on) count as one config. Spread is the standard deviation of the sample."));
}

function resultsTable(data, names, groups, label, result) {
  const several = groups.length > 1;
  const cells = (first, config, seed, ...rest) => [first, ...(several ? [config] : []), seed, ...rest];
  const rows = groups.flatMap((group) => [
    ...group.runs.map((place) => {
      const run = data.runs[place], network = run.network || {};
      return cells(runCell(names[place]), group.letter, run.seed ?? NONE, `${show.exactPercent(run[result])}${run.ended ? "" : " (so far)"}`, show.millions(network.parameters), show.millions(network.macs), duration(run.seconds));
    }),
    group.runs.length > 1 ? cells(el("span", { class: "run-cell mean-of" }, `mean ± sd, n = ${group.ended}`), group.letter, "", spread(group.values[result], show.exactPercent), spread(group.values.parameters, show.millions), spread(group.values.macs, show.millions), spread(group.values.seconds, duration)) : null,
  ].filter(Boolean));
  const made = table(cells("Run", "Config", "Seed", label, "Parameters", "MACs", "Time"), rows, "results");
  for (const one of made.querySelectorAll(".mean-of")) one.closest("tr").classList.add("mean");
  return made;
}

// Which config is which: its runs, its data and setting, and whatever differs.
function configsTable(rows, groups, names) {
  if (!rows.length) return null;
  const runs = groups.map((group) => runsOf(group.runs.map((place) => names[place])));
  return el("div", { class: "configs-box" }, el("h3", null, "What the configs differ in"),
    table(["", ...groups.map((group) => `Config ${group.letter}`)], [["Runs", ...runs],
      ...rows.map(([label, values]) => [runCell(label), ...values.map((value) => name(value, { class: "config-value" }))])], "configs"));
}

// "group (3 runs)" of a folder's seeds; other runs by their names, as far as there is room.
function runsOf(names) {
  const folders = new Set(names.map((text) => text.slice(0, Math.max(0, text.lastIndexOf("/")))));
  const [folder] = folders;
  if (names.length === 1) return runCell(names[0]);
  if (folders.size === 1 && folder) return [runCell(folder), ` (${plural(names.length, "run")})`];
  return [runCell(names.slice(0, 3).join(", ")), names.length > 3 ? ` … (${plural(names.length, "run")})` : null];
}

const letter = (number) => String.fromCharCode(65 + number % 26) + (number >= 26 ? Math.floor(number / 26) : "");

// Every seed's result as a dot, their mean as a line, one standard deviation as a band.
function seedPlot(data, group, result, label, title) {
  const points = group.runs.map((place) => data.runs[place]).filter((run) => run.ended && !missing(run[result]));
  const { mean, sd } = group.values[result];
  const values = points.map((run) => run[result]);
  const low = Math.min(...values, mean - (sd || 0)), high = Math.max(...values, mean + (sd || 0));
  const room = (high - low || Math.abs(mean) || 1) * 0.15, from = low - room, to = high + room;
  const width = 560, height = 74, x = (value) => 20 + (value - from) / (to - from) * (width - 40);
  const dots = points.map((run, i) => svg("circle", { cx: x(run[result]), cy: 30 + (i % 3 - 1) * 7, r: 4.5, class: "seed-dot" }, svg("title", null, `seed ${run.seed ?? "?"}: ${show.exactPercent(run[result])}`)));
  const marks = ticks(from, to, 6).map((value) => svg("text", { class: "tick", x: x(value), y: height - 6, "text-anchor": "middle" }, show.exactPercent(value)));
  return el("figure", { class: "seed-plot" }, el("figcaption", null, `${label} over seeds, ${title}: ${spread(group.values[result], show.exactPercent)}`),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label} of every seed` },
      sd ? svg("rect", { class: "seed-band", x: x(mean - sd), y: 10, width: x(mean + sd) - x(mean - sd), height: 40 }) : null,
      svg("path", { class: "seed-mean", d: `M${x(mean)} 6V54` }), svg("path", { class: "axis", d: `M20 54H${width - 20}` }), dots, marks));
}

function genotypesSection(data, names) {
  const found = data.runs.map((run, place) => ({ run, place })).filter(({ run }) => run.genotype);
  if (!found.length) return null;
  const distances = data.comparison.distances;
  const grid = distances ? table(["Edit distance", ...found.map(({ place }) => runCell(names[place]))],
    found.map((row) => [runCell(names[row.place]), ...found.map((column) => row.place === column.place ? "·" : distances[row.place][column.place] ?? NONE)]), "distances") : null;
  return el("section", { class: "genotypes-section" }, el("h2", null, "Genotypes side by side"), grid,
    el("p", { class: "lead" }, "The edit distance is the least number of single edits (an operation, an input, a place in the output) that make one genotype of the other, both cells together."),
    el("div", { class: "genotypes" }, sameGenotypes(found).map((same) => {
      const together = same.map(({ place }) => names[place]).join(", ");
      return el("article", null, el("h3", null, name(together)), ROLES.map((role) => el("div", { class: "scroll", tabindex: "0", role: "group" },
        el("p", { class: "caption" }, `${role} cell`), drawPicture(same[0].run.genotype.pictures[role], `The ${role} cell of ${plain(together).slice(0, 80)}`))));
    })));
}

// Runs that have the same cells (trainings of one genotype, say) are drawn once.
function sameGenotypes(found) {
  const groups = new Map();
  for (const one of found) {
    const key = JSON.stringify(one.run.genotype.pictures);
    groups.set(key, [...(groups.get(key) || []), one]);
  }
  return [...groups.values()];
}

// The matrices of a config's seeds, added up; the heading says whose they are.
function summedConfusion(data, names) {
  return lettered(data, "training").map((group) => {
    const places = group.runs.filter((place) => data.runs[place].confusion && data.runs[place].confusion.counts);
    const found = places.map((place) => data.runs[place].confusion);
    if (!found.length || found.some((one) => JSON.stringify(one.names) !== JSON.stringify(found[0].names))) return null;
    const counts = found[0].counts.map((row, i) => row.map((_, j) => found.reduce((sum, one) => sum + one.counts[i][j], 0)));
    const pairs = counts.flatMap((row, i) => row.map((count, j) => [i, j, count, row.reduce((sum, one) => sum + one, 0)])).filter(([i, j, count]) => i !== j && count > 0);
    pairs.sort((a, b) => b[2] - a[2]);
    const title = found.length === 1 ? ["Confusion matrix of ", name(names[places[0]])]
      : `Confusion matrix${group.letter ? ` of config ${group.letter}` : ""}, ${plural(found.length, "seed")} together`;
    return confusionSection({ ...found[0], counts, worst: pairs.slice(0, 12) }, title);
  });
}
