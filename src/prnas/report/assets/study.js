// A study: what may be concluded, every search as a dot, tables that sort, genotypes drawn small.
import { el, name, patch, plain, table } from "./dom.js";
import { DotPlot, KINDS, Scatter } from "./dots.js";
import { duration, missing, NONE, plural, show } from "./format.js";
import { commandList, factList, tile } from "./head.js";
import { drawPicture } from "./picture.js";

const KIND_NAMES = { search: "a search", random: "random cells", cell: "a known cell" };
const BEGUN = ["done", "running", "stopped", "wrong"];
const MOST_MATRIX = 40;
const MOST_UNITS = 1000;

const points = (value) => (missing(value) ? NONE : `${value > 0 ? "+" : ""}${(100 * value).toFixed(2)}`);
const pValue = (value) => (missing(value) ? NONE : value < 0.001 ? value.toExponential(1) : value.toPrecision(2));
const rankText = (ranks) => (ranks ? (ranks[0] === ranks[1] ? String(ranks[0]) : `${ranks[0]}–${ranks[1]}`) : NONE);
const hundredths = (value) => (missing(value) ? NONE : (100 * value).toFixed(2));

// Heading, what it sorts by, and the text in the table.
const COLUMNS = [
  ["n", (row) => row.n, (row) => (row.n === row.of ? row.n : `${row.n} of ${row.of}`)],
  [
    "Error, %",
    (row) => row.mean,
    (row) => `${hundredths(row.mean)}${missing(row.sd) ? "" : ` ± ${hundredths(row.sd)}`}`,
  ],
  [
    "95 % interval",
    (row) => row.low,
    (row) => (missing(row.low) ? NONE : `${hundredths(row.low)}–${hundredths(row.high)}`),
  ],
  ["Rank", (row) => row.ranks && row.ranks[0] + row.ranks[1] / 1000, (row) => rankText(row.ranks)],
  ["Between", (row) => row.between, (row) => hundredths(row.between)],
  ["Within", (row) => row.within, (row) => hundredths(row.within)],
  ["Parameters", (row) => row.parameters, (row) => show.millions(row.parameters)],
  ["MACs", (row) => row.macs, (row) => show.millions(row.macs)],
  ["Search", (row) => row.search_seconds, (row) => duration(row.search_seconds)],
  ["Training", (row) => row.training_seconds, (row) => duration(row.training_seconds)],
];

export class StudyPage {
  constructor() {
    this.sort = { column: 1, up: true };
    this.open = new Set();
    const linkOf = (row, unit) => this.unitLink(row, unit);
    this.dots = new DotPlot(linkOf);
    this.scatters = [
      new Scatter("Error against parameters", "parameters", "parameters", show.millions, linkOf),
      new Scatter("Error against MACs", "macs", "macs", show.millions, linkOf),
      new Scatter("Error against search time", "seconds", "search_seconds", duration, linkOf),
    ];
    this.head = el("div");
    this.rows = el("div");
    this.pairs = el("div");
    this.units = el("section", { class: "units-section" });
    this.genotypes = el("div");
    this.problems = el("div");
    this.keys = el("div", { class: "keys" });
    this.costs = el(
      "section",
      { class: "costs-section" },
      el("h2", null, "Error against what it costs"),
      el(
        "div",
        { class: "charts costs" },
        this.scatters.map((scatter) => scatter.node),
      ),
    );
    const results = el(
      "section",
      { class: "results-section" },
      el("h2", null, "Results"),
      this.keys,
      this.dots.node,
      this.rows,
    );
    const parts = [this.problems, results, this.pairs, this.costs, this.genotypes, this.units];
    this.node = el("div", null, this.head, el("main", null, parts));
  }

  // What is drawn anew for paper.
  get groups() {
    return [this.dots, ...this.scatters];
  }

  update({ study, title, ended }) {
    this.data = study;
    patch(this.head, studyHead(study, title, ended), conclusions(study));
    patch(
      this.keys,
      [...new Set(study.rows.map((row) => row.kind))].map((kind) =>
        el("span", { class: `key color-${KINDS[kind]}` }, el("i"), KIND_NAMES[kind]),
      ),
    );
    patch(this.problems, problemsSection(study));
    patch(this.pairs, pairsSection(study));
    for (const scatter of this.scatters) scatter.update(study);
    this.costs.hidden = this.scatters.every((scatter) => scatter.node.hidden);
    this.drawRows();
    this.drawUnits();
    // Thousands of lines and boxes, which seldom change.
    const cells = JSON.stringify(study.genotypes.map(({ drawn }) => drawn.map(({ seeds, error }) => [seeds, error])));
    if (cells !== this.cells) patch(this.genotypes, rowGenotypes(study));
    this.cells = cells;
  }

  order() {
    const { rows } = this.data;
    const { column, up } = this.sort;
    const by = column < 0 ? (row) => row.name : COLUMNS[column][1];
    const compare = (a, b) => {
      const [x, y] = [by(rows[a]), by(rows[b])];
      if (missing(x) || missing(y)) return missing(x) - missing(y) || a - b; // what is missing comes last
      const sign = x < y ? -1 : x > y ? 1 : 0;
      return (up ? sign : -sign) || a - b;
    };
    return rows.map((_, i) => i).sort(compare);
  }

  drawRows() {
    const { rows } = this.data;
    const order = this.order();
    const heading = (text, column) =>
      el(
        "button",
        { type: "button", class: "sort", "data-sort": column, onclick: () => this.sortBy(column) },
        text,
        el(
          "span",
          { class: "sort-mark", "aria-hidden": "true" },
          this.sort.column === column ? (this.sort.up ? "▲" : "▼") : "",
        ),
      );
    const headings = [heading("Row", -1), ...COLUMNS.map(([text], column) => heading(text, column))];
    const cells = order.map((i) => [namedRow(rows[i]), ...COLUMNS.map(([, , text]) => text(rows[i]))]);
    const made = table(headings, cells, "results study-rows");
    made.querySelectorAll("thead th").forEach((cell, i) => {
      if (i - 1 === this.sort.column) cell.setAttribute("aria-sort", this.sort.up ? "ascending" : "descending");
    });
    patch(this.rows, made, tableNote(this.data));
    this.dots.update(this.data, order);
  }

  sortBy(column) {
    this.sort = { column, up: this.sort.column === column ? !this.sort.up : true };
    this.drawRows();
  }

  // --- every search, with its runs' own reports

  link(row, folder) {
    return this.data.links === null ? null : `${this.data.links}${row.href}/${folder}/report.html`;
  }

  // Of a dot: the search's report or, of cells that nobody searched, the first training's.
  unitLink(row, { seed, search, trainings }) {
    if (search) return this.link(row, `seed-${seed}`);
    return trainings.length ? this.link(row, `seed-${seed}-training-${trainings[0][0]}`) : null;
  }

  drawUnits() {
    const { rows } = this.data;
    const details = rows.map((row) =>
      el(
        "details",
        {
          class: "units",
          "data-row": row.name,
          open: this.open.has(row.name),
          ontoggle: (event) => this.toggle(event),
        },
        el("summary", null, name(row.name), ` (${plural(row.units.length, "seed")})`),
        this.open.has(row.name) ? this.unitTable(row) : null,
      ),
    );
    patch(
      this.units,
      el("h2", null, "Every search, and its runs’ own reports"),
      el("p", { class: "lead" }, "Choose a row to see its seeds; each link opens the report of that run."),
      details,
    );
  }

  toggle(event) {
    const node = event.currentTarget;
    const key = node.dataset.row;
    if (node.open === this.open.has(key)) return;
    if (node.open) this.open.add(key);
    else this.open.delete(key);
    this.drawUnits();
  }

  unitTable(row) {
    const { trained, compares } = this.data;
    const searched = row.kind === "search";
    const run = (text, state, folder) => {
      const href = BEGUN.includes(state) ? this.link(row, folder) : null;
      const note = state === "done" ? "" : ` (${state})`;
      return [href ? el("a", { href }, text) : text, note];
    };
    const headings = [
      "Seed",
      ...(searched ? ["Search", "Search time", "Supernet’s validation error"] : []),
      ...(compares && !trained ? [this.data.metric] : []),
      ...(trained ? ["Test error, mean", "Trainings", "Parameters", "MACs"] : []),
    ];
    const lines = row.units
      .slice(0, MOST_UNITS)
      .map((unit) => [
        String(unit.seed),
        ...(searched
          ? [
              run("report", unit.search, `seed-${unit.seed}`),
              duration(unit.seconds),
              show.exactPercent(unit.validation),
            ]
          : []),
        ...(compares && !trained ? [show.exactPercent(unit.error)] : []),
        ...(trained
          ? [
              show.exactPercent(unit.error),
              unit.trainings.map(([number, state, error], i) => [
                i ? ", " : null,
                run(
                  missing(error) ? `training ${number}` : show.exactPercent(error),
                  state,
                  `seed-${unit.seed}-training-${number}`,
                ),
              ]),
              show.millions(unit.parameters),
              show.millions(unit.macs),
            ]
          : []),
      ]);
    return table(headings, lines, "results unit-table");
  }
}

function namedRow(row) {
  const what = row.published && row.published !== row.name ? row.published : KIND_NAMES[row.kind];
  return [name(row.name, { class: "run-cell" }), el("small", { class: "row-kind" }, what)];
}

// --- head and conclusions

function studyHead(study, title, ended) {
  const { jobs, rows } = study;
  const running = jobs.running ? `, ${jobs.running} running` : "";
  const done = jobs.done || 0;
  const state = ended
    ? el("span", { class: "state ended" }, "finished")
    : el("span", { class: "state" }, `not finished: ${Math.floor((100 * done) / jobs.of)} %`);
  return el(
    "header",
    { class: "head" },
    el("p", { class: "kind" }, "Study"),
    el("h1", null, name(title, { class: "run-name" }), " ", state),
    study.description ? el("p", { class: "description" }, name(study.description)) : null,
    el(
      "div",
      { class: "tiles" },
      tile(
        "Jobs done",
        ended ? String(done) : `${done} of ${jobs.of}`,
        ended ? "all of them" : `searches and trainings${running}`,
      ),
      tile("Rows", String(rows.length), "that are compared"),
      tile("Seeds", study.seeds, "of each row"),
      tile("Trainings", String(study.trainings), "of each seed’s cells"),
      tile("Time", duration(study.seconds), "of all jobs together"),
    ),
    el("div", { class: "details" }, factList(study.facts), commandList(study.commands)),
  );
}

function conclusions(study) {
  const more = study.num_shown - study.shown.length;
  const shown = study.shown.length
    ? [
        ...study.shown.map((text) => el("li", null, name(text))),
        more > 0 ? el("li", null, `And ${plural(more, "other pair")}: see the pairs below.`) : null,
      ]
    : el(
        "li",
        null,
        study.compares && study.rows.length > 1 ? "No row is shown to be better than another." : "Nothing yet.",
      );
  return el(
    "section",
    { class: "conclusions" },
    el("h2", null, "What may be concluded"),
    el(
      "div",
      { class: "verdicts" },
      el("div", { class: "verdict shown" }, el("h3", null, "Shown"), el("ul", null, shown)),
      el(
        "div",
        { class: "verdict open" },
        el("h3", null, "Not shown"),
        el(
          "ul",
          null,
          study.limits.map((text) => el("li", null, name(text))),
        ),
      ),
    ),
  );
}

function tableNote(study) {
  const trained = study.trained
    ? " Each search counts once: the mean of its trainings. Between and within: standard deviations between " +
      "searches, and of trainings of the same cells. Rows that cannot be told apart share their ranks."
    : "";
  const looked = study.compares ? "test error that NAS-Bench-201 says the cell has on CIFAR-10" : "";
  const what = study.trained ? "test error" : looked || "validation error of the supernet";
  return el(
    "p",
    { class: "lead" },
    `Mean ± standard deviation of the ${what} over n seeds, in percent, with a 95 % bootstrap interval of `,
    `the mean.${trained} Choose a heading to sort.`,
  );
}

function problemsSection({ problems, jobs }) {
  if (!problems.length) return null;
  const more = jobs.problems - problems.length;
  return el(
    "section",
    { class: "problems" },
    el("h2", null, "Jobs that went wrong"),
    table(
      ["Job", "Run", "State", "What it said last"],
      problems.map(([number, path, state, text]) => [String(number), name(path), state, name(text, { class: "said" })]),
      "results problem-table",
    ),
    more > 0 ? el("p", { class: "lead" }, `And ${plural(more, "other job")}: prnas study … --list shows them.`) : null,
  );
}

// --- pairs

function pairsSection({ rows, pairs, num_pairs: number, agreement, compares }) {
  if (!pairs.length) return agreement ? el("p", { class: "lead" }, agreement) : null;
  const lines = pairs.map(([a, b, difference, p, corrected, significant]) => [
    [name(rows[a].name, { class: "run-cell" }), " – ", name(rows[b].name, { class: "run-cell" })],
    points(difference),
    pValue(p),
    pValue(corrected),
    significant ? el("strong", { class: "differ" }, "differ") : "not shown",
  ]);
  const less =
    pairs.length < number ? ` The ${pairs.length} of ${number} pairs with the least p-values are listed.` : "";
  const list = table(["Rows", "Points", "p", "p, Holm", ""], lines, "results pair-table");
  return el(
    "section",
    { class: "pairs-section" },
    el("h2", null, "Which pairs differ"),
    el(
      "p",
      { class: "lead" },
      "Permutation tests of the means of searches, corrected by Holm’s method for the number of pairs; below 0.05 ",
      `they differ. Points: the second row’s mean error less the first’s.${less}`,
    ),
    el("div", { class: "pairs" }, rows.length > 2 && rows.length <= MOST_MATRIX ? pairMatrix(rows, pairs) : null, list),
    compares && agreement ? el("p", { class: "lead" }, agreement) : null,
  );
}

// In a row's line: by how much it is better (−) or worse (+) than the row of the column.
function pairMatrix(rows, pairs) {
  const cells = rows.map(() => rows.map(() => null));
  for (const [a, b, difference, , corrected, significant] of pairs) {
    cells[a][b] = [-difference, corrected, significant];
    cells[b][a] = [difference, corrected, significant];
  }
  const lines = rows.map((row, i) => [
    name(row.name, { class: "run-cell" }),
    ...rows.map((other, j) => {
      const cell = cells[i][j];
      if (!cell) return i === j ? "·" : NONE;
      const [difference, corrected, significant] = cell;
      const className = significant ? (difference < 0 ? "better" : "worse") : "same";
      const title = `${plain(row.name)} against ${plain(other.name)}: p = ${pValue(corrected)} (Holm)`;
      return el("span", { class: `pair ${className}`, title }, points(difference));
    }),
  ]);
  const box = table(
    ["Points against", ...rows.map((row) => name(row.name, { class: "run-cell" }))],
    lines,
    "results matrix-table",
  );
  return el(
    "div",
    { class: "pair-matrix" },
    box,
    el(
      "p",
      { class: "caption" },
      "Filled: a difference that is shown; blue is better than the column’s row, orange is worse.",
    ),
  );
}

// --- genotypes

function rowGenotypes({ rows, genotypes }) {
  if (!genotypes.some(({ drawn }) => drawn.length)) return null;
  return el(
    "section",
    { class: "genotypes-section" },
    el("h2", null, "Genotypes"),
    el("p", { class: "lead" }, "The cells of each row, from the least error to the greatest."),
    genotypes.map(({ row, of, drawn }) =>
      drawn.length
        ? el(
            "section",
            { class: "row-genotypes" },
            el(
              "h3",
              null,
              name(rows[row].name),
              of > drawn.length
                ? el("small", null, `${drawn.length} of ${of}, evenly from the best to the worst`)
                : null,
            ),
            el(
              "div",
              { class: "small-genotypes" },
              drawn.map((genotype) => smallGenotype(genotype, rows[row])),
            ),
          )
        : null,
    ),
  );
}

function smallGenotype({ seeds, more, error, pictures }, row) {
  const whose = row.kind === "cell" ? "" : `seed ${seeds.join(", ")}${more ? ", …" : ""}`;
  const result = missing(error) ? "" : show.exactPercent(error);
  const caption = [whose, result].filter(Boolean).join(" · ");
  return el(
    "article",
    null,
    el("p", { class: "caption" }, caption || "not trained yet"),
    Object.entries(pictures).map(([role, picture]) =>
      drawPicture(picture, `The ${role} cell of ${plain(row.name)} ${whose}`),
    ),
  );
}
