// The cells, evolving: a slider over cycles, for every edge its pool, and the genotype at the end.
import { el, patch, replace } from "./dom.js";
import { show } from "./format.js";
import { drawPicture } from "./picture.js";
import { toolButton } from "./timeline.js";
import { edgeName, numInputs, TreeView } from "./tree.js";

// In the narrow boxes a convolution is its sizes alone: no other operation has such a label.
const brief = (label) => label.replace(/^conv /, "");

// "+0.0123 ± 0.0040": two digits of the error, and the value no more precisely.
function withError(value, error) {
  const digits = error > 0 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(error)))) : 4;
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)} ± ${error.toFixed(digits)}`;
}

// What was measured of a candidate, in words.
function worthOf(evidence, index) {
  const words = {
    removal: "without it the loss rises by",
    paths: "drawn cells with it are better by",
    saliency: "its gradient foretells",
  };
  return Object.entries(words)
    .filter(([kind]) => evidence?.[kind]?.[index])
    .map(([kind, said]) => `${said} ${withError(...evidence[kind][index])}`)
    .join("; ");
}

// Whether the candidate that survived is better than the one that was pruned.
function decisionMark([kept, pruned, difference, error, p], byPaths) {
  const sure = p < 0.05;
  const kind = sure ? (difference > 0 ? "sure" : "against") : "chance";
  const words = { sure: "beyond chance", against: "against what was measured", chance: "no better than chance" };
  const by = withError(difference, error);
  const what = byPaths
    ? `the loss of drawn cells with it is lower by ${by}`
    : `the loss rises by ${by} more without it`;
  const why = `${what} (p = ${show.short(p)})`;
  const title = `${kept} was kept rather than ${pruned}: ${why}`;
  return el(
    "span",
    { class: `decision ${kind}`, title: `${title}: ${words[kind]}` },
    el("b", { "aria-hidden": "true" }, { sure: "✓", against: "✗", chance: "?" }[kind]),
    by,
    el("span", { class: "unseen" }, ` ${words[kind]}`),
  );
}

// Why nothing is compared on an edge that lost a candidate.
function uncomparedMark(reason) {
  const words = { unmeasured: "not measured", rule: "by a rule" };
  const title = {
    unmeasured: "There was no time to measure this edge.",
    rule: "A rule decided, such as a bound on skips or limits on the network, not what the candidates are worth.",
  };
  return el("span", { class: "decision chance", title: title[reason] }, words[reason]);
}

export class CellsView {
  constructor() {
    this.step = null;
    this.edge = { role: "normal", number: 0 };
    const slide = () => this.go(Number(this.slider.value));
    this.slider = el("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": "Cycle", oninput: slide });
    this.output = el("output", { class: "step-name" });
    this.ticks = el("div", { class: "slider-ticks", "aria-hidden": "true" });
    this.playButton = toolButton("▶", "Play the cycles one after the other", () => this.play());
    this.keys = el("div", { class: "keys" });
    this.panels = el("div", { class: "cells" });
    this.tree = new TreeView((role, number) => this.select(role, number));
    this.node = el(
      "section",
      { class: "cells-section", id: "cells" },
      el("h2", null, "The cells, cycle by cycle"),
      el(
        "p",
        { class: "lead" },
        "Every box is an edge with its pool of candidates; bars are architecture weights ",
        "(scores, in %), the tick marks equal weights. Choose an edge to see its family tree. ",
        "Marks: by how much more the loss rises without the last candidate that was kept than without the first ",
        "that was pruned, and whether that is beyond chance.",
      ),
      el(
        "div",
        { class: "stepper" },
        toolButton("‹", "One cycle back", () => this.go(this.step - 1)),
        el("div", { class: "slider" }, this.slider, this.ticks),
        toolButton("›", "One cycle on", () => this.go(this.step + 1)),
        this.playButton,
        this.output,
      ),
      this.keys,
      this.panels,
      this.tree.node,
    );
  }

  legend() {
    const about = { conv: "conv: kernel, d dilation, ×[widths]" };
    const key = (...children) => el("span", { class: "key" }, children);
    const colors = Object.entries(this.run.cycles.colors);
    replace(
      this.keys,
      colors.map(([type, color]) => el("span", { class: `key color-${color}` }, el("i"), about[type] || type)),
      key(el("b", { class: "fresh-mark" }, "●"), "new in this cycle"),
      key(el("s", null, "pruned"), " at its end"),
      key(el("b", { class: "child-mark" }, "+"), "child that then came in (↺ on this edge before)"),
      this.isMeasured
        ? key(
            el("b", null, "✓"),
            "kept beyond chance, ",
            el("b", null, "?"),
            "at chance, ",
            el("b", null, "✗"),
            "against",
          )
        : null,
    );
  }

  get isMeasured() {
    return Object.values(this.run.cycles.steps).some((cycles) => cycles.some((edges) => edges.some((edge) => edge[4])));
  }
  get numCycles() {
    return this.run.cycles.steps.normal.length;
  }
  get lastStep() {
    return this.run.genotype ? this.numCycles : this.numCycles - (this.isOver ? 1 : 0);
  }
  get isOver() {
    return this.run.schedule.length > 0 && this.numCycles >= this.run.schedule.length;
  }

  update(run) {
    const atEnd = this.step === null || this.step >= this.lastStep;
    this.run = run;
    this.slider.max = Math.max(0, this.lastStep);
    const label = (step) => (step >= this.numCycles && run.genotype ? "★" : String(step + 1));
    replace(
      this.ticks,
      [...Array(this.lastStep + 1).keys()].map((step) => el("span", null, label(step))),
    );
    this.legend();
    this.key = null;
    this.go(atEnd ? this.lastStep : this.step);
  }

  go(step) {
    this.step = Math.max(0, Math.min(step, this.lastStep));
    this.slider.value = this.step;
    const text = this.stepText();
    this.output.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    if (this.key !== this.step) this.draw();
    this.key = this.step;
  }

  stepText() {
    const planned = Math.max(this.run.schedule.length, this.numCycles);
    if (this.step < this.numCycles) return `Cycle ${this.step + 1} of ${planned}`;
    return this.run.genotype ? "The genotype" : `Cycle ${this.step + 1}: under way`;
  }

  play() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.step >= this.lastStep) this.go(0);
    this.playButton.textContent = "❚❚";
    this.timer = setInterval(() => {
      this.go(this.step + 1);
      if (this.step >= this.lastStep) this.stop();
    }, 900);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = "▶";
  }

  draw() {
    const genotype = this.step >= this.numCycles && this.run.genotype;
    const drawn = (role) =>
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "group" },
        drawPicture(genotype.pictures[role], `The ${role} cell that was found`),
      );
    patch(
      this.panels,
      Object.keys(this.run.cycles.steps).map((role) =>
        el(
          "section",
          { class: `cell-panel ${genotype ? "drawn" : ""}` },
          el("h3", null, `${role} cell`),
          genotype ? drawn(role) : this.matrix(role),
        ),
      ),
    );
    this.tree.draw(this.run, this.edge, this.step);
  }

  matrix(role) {
    const { positions, now, steps } = this.run.cycles;
    const current = (now[role] || []).map((pool) => [pool, null, [], []]);
    const edges = this.step < this.numCycles ? steps[role][this.step] : current;
    const before = this.step > 0 ? steps[role][this.step - 1] : null;
    const columns = positions.length ? Math.max(...positions.map(([, source]) => source)) + 1 : 4;
    const grid = el(
      "div",
      { class: "matrix", "--columns": String(columns) },
      edges.map((edge, number) =>
        this.card(role, number, edge, new Set(before ? before[number][3].map(([child]) => child) : [])),
      ),
    );
    if (positions.length === edges.length) {
      [...grid.children].forEach((card, number) => {
        card.style.setProperty("--row", positions[number][0] - numInputs(positions) + 1);
        card.style.setProperty("--column", positions[number][1] + 1);
      });
    }
    return grid;
  }

  card(role, number, [ops, weights, pruned, added, evidence], fresh) {
    const { operations, types, colors, morphisms, positions } = this.run.cycles;
    const scores = new Map(pruned);
    const order = ops.map((_, i) => i);
    if (weights) order.sort((a, b) => scores.has(ops[a]) - scores.has(ops[b]) || weights[b] - weights[a]);
    const full = weights ? Math.max(2 / ops.length, ...weights) : 1;
    const rows = order.map((i) => {
      const op = ops[i];
      const gone = scores.has(op);
      const weight = gone ? scores.get(op) : weights ? weights[i] : null;
      const title = this.candidateTitle(op, weight, gone, fresh.has(op), worthOf(evidence, i));
      const row = el(
        "span",
        { class: `candidate color-${colors[types[op]]}${gone ? " pruned" : ""}`, title },
        weights ? el("span", { class: "bar" }) : null,
        el(
          "span",
          { class: "candidate-name" },
          fresh.has(op) ? el("b", { class: "fresh-mark" }, "●") : null,
          brief(operations[op]),
        ),
        el("span", { class: "candidate-value" }, weights ? show.weight(weight) : ""),
      );
      if (weights) {
        row.firstChild.style.width = `${(100 * weights[i]) / full}%`;
        row.style.setProperty("--equal", `${100 / ops.length / full}%`);
      }
      return row;
    });
    const children = added.map(([child, parent, morphism, probability, returned]) => {
      const drawn = `which was drawn with probability ${show.percent(probability)}`;
      const again = returned ? "; on this edge before" : "";
      const came = `${morphisms[morphism]} of ${operations[parent]}, ${drawn}${again}`;
      return el(
        "span",
        { class: `child color-${colors[types[child]]}`, title: `${operations[child]}: ${came}` },
        el("b", { class: "child-mark" }, "+"),
        brief(operations[child]),
        returned ? " ↺" : null,
        el("small", null, `${morphisms[morphism]} of ${brief(operations[parent])}`),
      );
    });
    const title = positions[number] ? edgeName(positions, number) : `edge ${number + 1}`;
    return el(
      "button",
      {
        type: "button",
        class: "edge",
        "data-edge": `${role}-${number}`,
        "aria-pressed": String(this.edge.role === role && this.edge.number === number),
        "aria-label": `${role} cell, edge ${title}: show its family tree`,
        onclick: () => this.select(role, number, true),
      },
      el("span", { class: "edge-name" }, title),
      rows,
      evidence?.decision ? decisionMark(evidence.decision, "paths" in evidence) : null,
      evidence?.uncompared ? uncomparedMark(evidence.uncompared) : null,
      children.length ? el("span", { class: "children" }, children) : null,
    );
  }

  candidateTitle(op, weight, gone, fresh, worth) {
    const parts = [this.run.cycles.operations[op]];
    if (weight !== null) parts.push(`${show.exactPercent(weight)} of the edge's weight`);
    if (worth) parts.push(worth);
    if (fresh) parts.push("came in at the last cycle's end");
    if (gone) parts.push("pruned at this cycle's end");
    return parts.join("; ");
  }

  select(role, number, scroll) {
    this.edge = { role, number };
    this.mark();
    this.tree.draw(this.run, this.edge, this.step);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (scroll) this.tree.node.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
  }

  mark() {
    const wanted = `${this.edge.role}-${this.edge.number}`;
    for (const card of this.panels.querySelectorAll(".edge")) {
      card.setAttribute("aria-pressed", String(card.dataset.edge === wanted));
    }
  }
}
