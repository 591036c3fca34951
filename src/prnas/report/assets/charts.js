// Charts that share epochs, zoom and cursor.
import { Chart } from "./chart.js";
import { el } from "./dom.js";

export class ChartGroup {
  // `prefix`: of the charts' ids on the page, where there are several groups.
  constructor(prefix) {
    this.prefix = prefix;
    this.charts = new Map();
    this.cycles = [];
    this.end = 1;
    this.domain = [0, 1];
    this.cursor = null;
    this.hovered = null;
    this.hidden = new Set(); // names of series that are hidden in every chart
    this.listeners = [];
    this.pending = false;
    this.said = el("div", { class: "unseen", role: "status", "aria-live": "polite" });
    // A tap elsewhere takes away what a finger pointed at.
    addEventListener("pointerdown", (event) => {
      const elsewhere = event.pointerType === "touch" && !event.target.closest?.(".plot");
      if (elsewhere && this.cursor !== null) this.point(null, null);
    });
    this.observer = new ResizeObserver(() => {
      const resized = [...this.charts.values()].filter((chart) => chart.resize());
      if (resized.length) this.redraw();
    });
  }

  // Shows what the data lists: epochs `done`, the last one that is or will be there (`end`), `cycles` of
  // {start, end, grace}, and plots in sections. What is there already changes in place.
  update({ done, end, cycles, sections }) {
    const whole = this.isWhole;
    Object.assign(this, { done, end, cycles });
    this.domain = whole ? [0, end] : this.domain;
    for (const section of sections) for (const plot of section.plots) this.chart(plot).setLines(plot.lines);
    this.changed();
  }

  // The chart with this id: a new one, or the one that is there already.
  chart(plot) {
    if (!this.charts.has(plot.id)) {
      const chart = new Chart(this, plot);
      this.charts.set(plot.id, chart);
      this.observer.observe(chart.node);
    }
    return this.charts.get(plot.id);
  }

  // Sections with their charts, to be put on the page once.
  nodes(sections) {
    return sections.map(({ id, title, note, plots }) =>
      el(
        "section",
        { class: "chart-section" },
        el("h3", null, title, note ? el("small", null, note) : null),
        el(
          "div",
          { class: `charts ${id}` },
          plots.map((plot) => this.chart(plot).node),
        ),
      ),
    );
  }

  get isWhole() {
    return this.domain[0] === 0 && this.domain[1] === this.end;
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      if (this.pending) this.drawNow();
    });
  }

  // All sizes are read before anything is drawn: reading in between would lay out the page anew.
  drawNow() {
    this.pending = false;
    for (const chart of this.charts.values()) chart.resize();
    for (const chart of this.charts.values()) chart.draw();
  }

  changed() {
    for (const listener of this.listeners) listener();
    this.redraw();
  }

  zoom(low, high) {
    const span = Math.max(1, Math.min(high - low, this.end));
    const from = Math.max(0, Math.min(low, this.end - span));
    this.domain = [from, from + span];
    this.changed();
  }

  reset() {
    this.zoom(0, this.end);
  }

  zoomBy(factor, around) {
    const [from, to] = this.domain;
    const middle = around ?? (from + to) / 2;
    const span = Math.max(1, (to - from) * factor);
    const low = Math.round(middle - (span * (middle - from)) / (to - from));
    this.zoom(low, low + Math.max(1, Math.round(span)));
  }

  pan(share) {
    const [from, to] = this.domain;
    const step = Math.sign(share) * Math.max(1, Math.round(Math.abs(share) * (to - from)));
    this.zoom(from + step, to + step);
  }

  point(chart, epoch) {
    const [from, to] = this.domain;
    const cursor = epoch === null ? null : Math.max(Math.max(1, Math.ceil(from)), Math.min(epoch, Math.floor(to)));
    if (cursor === this.cursor && chart === this.hovered) return;
    this.cursor = cursor;
    this.hovered = chart;
    if (this.moving) return;
    this.moving = true;
    requestAnimationFrame(() => {
      this.moving = false;
      for (const shown of this.charts.values()) shown.drawCursor();
    });
  }

  key(chart, event) {
    const step = event.shiftKey ? 10 : 1;
    const now = this.cursor ?? this.domain[1];
    const actions = {
      ArrowLeft: () => this.point(chart, now - step),
      ArrowRight: () => this.point(chart, this.cursor === null ? now : now + step),
      Home: () => this.point(chart, this.domain[0] + 1),
      End: () => this.point(chart, this.domain[1]),
      "+": () => this.zoomBy(0.5, this.cursor),
      "=": () => this.zoomBy(0.5, this.cursor),
      "-": () => this.zoomBy(2, this.cursor),
      0: () => this.reset(),
      Escape: () => this.reset(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  describe(epoch) {
    const number = this.cycles.findIndex((cycle) => epoch > cycle.start && epoch <= cycle.end);
    if (number < 0) return `epoch ${epoch}`;
    const cycle = this.cycles[number];
    const grace = epoch <= cycle.start + cycle.grace ? ", grace" : "";
    return `epoch ${epoch} · cycle ${number + 1}${grace}`;
  }

  say(text) {
    this.said.textContent = text;
  }
}
