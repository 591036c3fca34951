// The family tree of an edge: every operation it ever held, from whom it came, how long it stayed.
import { el, patch, replace, svg } from "./dom.js";
import { missing, plural, show } from "./format.js";

const ROW = 30;
const BAR = 16;

// The first edge leads to the first node, which comes after the inputs.
export const numInputs = (positions) => positions[0][0];
const stateName = (state, inputs) => (state < inputs ? `c(k−${inputs - state})` : `B${state - inputs + 1}`);
export const edgeName = (positions, number) => {
  const [target, source] = positions[number];
  return [source, target].map((state) => stateName(state, numInputs(positions))).join(" → ");
};

// One entry for each stay in the pool, children after their parents: {op, parent, morphism, from, to, …}.
function lifetimes(cycles, role, number) {
  const steps = cycles.steps[role].map((step) => step[number]);
  const now = cycles.now[role] ? cycles.now[role][number] : [];
  const initial = steps.length ? steps[0][0] : now;
  const all = [];
  const living = new Map();
  const arrive = (op, parent, morphism, from, probability, returned) => {
    const open = { to: null, score: null, weights: [], children: [] };
    const stay = { op, parent, morphism, from, probability, returned, ...open };
    all.push(stay);
    living.set(op, stay);
    if (parent) parent.children.push(stay);
    return stay;
  };
  const roots = initial.map((op) => arrive(op, null, null, 0, null, false));
  steps.forEach(([ops, weights, pruned, added], cycle) => {
    ops.forEach((op, i) => {
      if (living.has(op)) living.get(op).weights[cycle] = weights[i];
    });
    const parents = new Map(living);
    for (const [op, score] of pruned) {
      if (!living.has(op)) continue;
      Object.assign(living.get(op), { to: cycle + 1, score });
      living.delete(op);
    }
    for (const [op, parent, morphism, probability, returned] of added) {
      const child = arrive(op, parents.get(parent) || null, morphism, cycle + 1, probability, returned);
      if (!child.parent) roots.push(child);
    }
  });
  const ordered = [];
  const visit = (stay, depth) => {
    stay.depth = depth;
    ordered.push(stay);
    for (const child of stay.children) visit(child, depth + 1);
  };
  for (const root of roots) visit(root, 0);
  return ordered;
}

export class TreeView {
  constructor(select) {
    this.box = el("div", { class: "tree-box" });
    const choose = () => {
      const [role, number] = this.choice.value.split("-");
      select(role, Number(number));
    };
    this.choice = el("select", { "aria-label": "Edge", onchange: choose });
    this.summary = el("span", { class: "tree-summary" });
    const head = el("div", { class: "tree-head" }, el("h3", null, "Family tree"), this.choice, this.summary);
    this.node = el("section", { class: "tree", id: "tree" }, head, this.box);
    const resized = () => {
      if (this.run && this.box.clientWidth !== this.width) this.draw(this.run, this.edge, this.step);
    };
    new ResizeObserver(resized).observe(this.box);
  }

  fillChoice(cycles) {
    const key = JSON.stringify(cycles.positions);
    if (key === this.choiceKey) return;
    this.choiceKey = key;
    replace(
      this.choice,
      Object.keys(cycles.steps).map((role) =>
        el(
          "optgroup",
          { label: `${role} cell` },
          (cycles.now[role] || []).map((_, number) =>
            el(
              "option",
              { value: `${role}-${number}` },
              `${role}: ${cycles.positions[number] ? edgeName(cycles.positions, number) : number + 1}`,
            ),
          ),
        ),
      ),
    );
  }

  draw(run, edge, step) {
    Object.assign(this, { run, edge, step, width: this.box.clientWidth });
    this.fillChoice(run.cycles);
    this.choice.value = `${edge.role}-${edge.number}`;
    if (!this.width) return;
    const all = lifetimes(run.cycles, edge.role, edge.number);
    const chosen = this.chosen();
    const distinct = new Set(all.map((stay) => stay.op)).size;
    const end = chosen ? `; ${chosen} is in the genotype` : "; the edge is not in the genotype";
    this.summary.textContent = `${plural(distinct, "operation")} tried on this edge${run.genotype ? end : ""}`;
    const done = run.cycles.steps[edge.role].length;
    const columns = Math.max(1, run.schedule.length, done);
    const gutter = Math.min(270, Math.max(138, this.width * 0.34));
    const tail = 46;
    const unit = Math.max(14, (this.width - gutter - tail) / columns);
    const x = (cycle) => gutter + cycle * unit;
    const height = 24 + all.length * ROW;
    const rows = new Map(all.map((stay, i) => [stay, 24 + i * ROW + ROW / 2]));
    const parts = [];
    if (step < columns)
      parts.push(svg("rect", { class: "tree-now", x: x(step), y: 2, width: unit, height: height - 2 }));
    for (let i = 0; i < columns; i += 1) {
      parts.push(svg("text", { class: "tick", x: x(i) + unit / 2, y: 14, "text-anchor": "middle" }, i + 1));
      parts.push(svg("path", { class: "grid-line", d: `M${x(i)} 20V${height}` }));
    }
    for (const stay of all) parts.push(...this.link(stay, rows, x));
    const until = run.ended ? done : done + 1;
    for (const stay of all) parts.push(this.row(stay, rows.get(stay), x, unit, gutter, until, columns, chosen));
    const width = Math.ceil(x(columns) + tail);
    const sentences = all.map((stay) => this.sentence(stay)).join(". ");
    const label = `Family tree of ${plural(all.length, "operation")}: ${sentences}`;
    patch(
      this.box,
      svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, parts),
    );
  }

  // The operation that the genotype has on this edge.
  chosen() {
    const { run, edge } = this;
    const position = run.cycles.positions[edge.number];
    if (!run.genotype?.edges || !position) return null;
    const [target, source] = position;
    const match = run.genotype.edges[edge.role].find(([to, from]) => to === target && from === source);
    return match ? match[2] : null;
  }

  sentence(stay) {
    const { operations, morphisms } = this.run.cycles;
    const parent = stay.parent ? ` of ${operations[stay.parent.op]}` : "";
    const again = stay.returned ? ", on this edge before" : "";
    const arrival = `${morphisms[stay.morphism]}${parent} after cycle ${stay.from}${again}`;
    const came = stay.morphism === null ? "there from the start" : arrival;
    const went = stay.to === null ? "" : `; pruned after cycle ${stay.to} at ${show.percent(stay.score)}`;
    return `${operations[stay.op]}: ${came}${went}`;
  }

  // From the parent's bar at the cycle's end down to the child's.
  link(stay, rows, x) {
    if (!stay.parent) return [];
    const at = x(stay.from);
    const top = rows.get(stay.parent);
    const y = rows.get(stay);
    return [
      svg("path", { class: "tree-link", d: `M${at - 5} ${top}Q${at} ${top} ${at} ${top + 5}V${y - 3}` }),
      svg("circle", { class: "tree-joint", cx: at - 5, cy: top, r: 2 }),
    ];
  }

  row(stay, y, x, unit, gutter, until, columns, chosen) {
    const { operations, types, colors, morphisms } = this.run.cycles;
    const end = Math.min(stay.to ?? until, columns);
    const indent = Math.min(stay.depth * 12, gutter * 0.3);
    const bars = [];
    for (let cycle = stay.from; cycle < Math.max(end, stay.from + 0.01); cycle += 1) {
      const weight = stay.weights[cycle];
      const thick = missing(weight) ? 2 : Math.max(2, BAR * Math.min(1, weight / 0.6));
      bars.push(
        svg("rect", { x: x(cycle) + 0.5, y: y - thick / 2, width: Math.max(1, unit - 1), height: thick, rx: 1.5 }),
      );
    }
    const marks = [];
    if (stay.to !== null && stay.to <= columns) {
      marks.push(svg("text", { class: "tree-end", x: x(end) + 4, y: y + 3.5 }, `✕ ${show.weight(stay.score)}`));
    } else if (chosen && chosen === operations[stay.op]) {
      marks.push(svg("text", { class: "tree-star", x: x(end) + 4, y: y + 4 }, "★"));
    }
    const origin = stay.morphism === null ? "from the start" : morphisms[stay.morphism] + (stay.returned ? " ↺" : "");
    return svg(
      "g",
      { class: `tree-row color-${colors[types[stay.op]]}` },
      svg("title", null, this.sentence(stay)),
      stay.depth ? svg("path", { class: "tree-branch", d: `M${indent - 8} ${y - 14}V${y - 3}H${indent - 2}` }) : null,
      svg("text", { class: "tree-name", x: indent, y: y - 1 }, operations[stay.op]),
      svg("text", { class: "tree-origin", x: indent, y: y + 10.5 }, origin),
      bars,
      marks,
    );
  }
}
