// One chart: lines over epochs, as the data lists them. Zoom and cursor belong to the group and are shared by all.
import { el, name, plain, put, replace, svg } from "./dom.js";
import { missing, show } from "./format.js";
import { lastValue, linePath, range, ticks, valueAt } from "./scale.js";

const MARGIN = { left: 46, right: 10, top: 16, bottom: 20 };

export class Chart {
  // `plot`: id, title, note, section, format, low, high (fixed bounds), as the data lists it.
  constructor(group, plot) {
    this.group = group;
    this.options = plot;
    this.id = `${group.prefix}${plot.id}`;
    this.format = show[plot.format.name];
    this.tick = show[plot.format.tick];
    this.lines = [];
    this.hidden = new Set();
    this.legend = el("div", { class: "legend" });
    this.plot = svg("svg", { class: "plot", tabindex: "0", role: "img", "data-chart": this.id });
    this.tip = el("div", { class: "tooltip", hidden: true });
    const note = plot.note ? el("span", { class: "chart-note" }, plot.note) : null;
    this.node = el(
      "figure",
      { class: "chart", "data-chart-box": this.id },
      el("figcaption", null, el("span", { class: "chart-title" }, plot.title), note),
      this.legend,
      el("div", { class: "plot-box" }, this.plot, this.tip),
    );
    this.width = 0;
    this.height = plot.section === "learning" ? 210 : 150;
    this.listen();
  }

  // Lines without `xs` have a value at the end of every epoch.
  setLines(lines) {
    const labels = lines.map((line) => line.label).join("\n");
    const same = labels === this.lines.map((line) => line.label).join("\n");
    this.lines = lines.map((line) => ({ ...line, xs: line.xs || line.ys.map((_, i) => i + 1) }));
    if (!same) this.buildLegend();
    const values = this.lines.map((line) => `${line.label} ${this.format(lastValue(line))}`);
    this.plot.setAttribute("aria-label", plain(`${this.options.title}: ${values.join(", ")}`));
  }

  buildLegend() {
    this.values = new Map();
    const focused = this.legend.contains(document.activeElement) ? document.activeElement.dataset.series : null;
    replace(
      this.legend,
      this.lines.map((line) => this.legendButton(line)),
    );
    const again = [...this.legend.children].find((button) => button.dataset.series === focused);
    if (again) again.focus({ preventScroll: true });
  }

  legendButton(line) {
    const value = el("span", { class: "legend-value" });
    this.values.set(line.label, value);
    return el(
      "button",
      {
        type: "button",
        class: "legend-item",
        "data-series": line.label,
        "--c": `var(--${line.color})`,
        "aria-pressed": String(!this.isHidden(line)),
        title: `Show or hide ${plain(line.label).slice(0, 80)}`,
        onclick: (event) => this.toggle(line, event.currentTarget),
      },
      swatch(line, 16),
      name(line.label, { class: "legend-name" }),
      value,
    );
  }

  isHidden(line) {
    return this.hidden.has(line.label) || this.group.hidden.has(line.label);
  }

  toggle(line, button) {
    if (!this.hidden.delete(line.label)) this.hidden.add(line.label);
    button.setAttribute("aria-pressed", String(!this.hidden.has(line.label)));
    this.draw();
  }

  // --- drawing

  resize() {
    const width = Math.max(180, Math.floor(this.plot.parentNode.clientWidth));
    if (width === this.width) return false;
    this.width = width;
    return true;
  }

  toX(epoch) {
    const [from, to] = this.group.domain;
    return MARGIN.left + ((epoch - from) / (to - from)) * (this.width - MARGIN.left - MARGIN.right);
  }

  toEpoch(x) {
    const [from, to] = this.group.domain;
    return from + ((x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right)) * (to - from);
  }

  bounds(shown) {
    const { low, high } = this.options;
    const extent = range(shown, ...this.group.domain) || [0, 1];
    let [least, most] = [low ?? extent[0], high ?? extent[1]];
    if (most - least < 1e-12) {
      const around = Math.abs(most) * 0.1 || 1;
      least = low ?? least - around;
      most = high ?? most + around;
    }
    const room = (most - least) * 0.06;
    return [low ?? (least >= 0 && least - room < 0 ? 0 : least - room), high ?? most + room];
  }

  draw() {
    if (!this.width) return;
    const shown = this.lines.filter((line) => !this.isHidden(line));
    const [least, most] = this.bounds(shown);
    const bottom = this.height - MARGIN.bottom;
    const toX = (x) => this.toX(x);
    const toY = (y) => MARGIN.top + ((most - y) / (most - least)) * (bottom - MARGIN.top);
    this.toY = toY;
    const [from, to] = this.group.domain;
    const clip = `clip-${this.id}`;
    const width = this.width - MARGIN.left - MARGIN.right;
    const window = { x: MARGIN.left, y: MARGIN.top - 3, width, height: bottom - MARGIN.top + 6 };
    const drawn = shown.map((line) => {
      const { path, dots } = linePath(line, from, to, toX, toY);
      return svg(
        "g",
        { class: "series", "--c": `var(--${line.color})` },
        svg("path", { d: path || "M0 0", "stroke-dasharray": line.dash }),
        dots ? svg("path", { d: dots, class: "dots" }) : null,
      );
    });
    this.cursor = svg("g", { class: "cursor" });
    this.brush = svg("rect", { class: "brush", y: MARGIN.top, height: bottom - MARGIN.top, width: 0, x: 0 });
    put(this.plot, { width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}` });
    replace(
      this.plot,
      svg("defs", null, svg("clipPath", { id: clip }, svg("rect", window))),
      this.bands(bottom),
      this.grid(least, most, toY, bottom),
      svg("g", { "clip-path": `url(#${clip})` }, drawn),
      this.brush,
      this.cursor,
    );
    this.drawCursor();
  }

  // Cycles with their numbers; grace epochs are shaded.
  bands(bottom) {
    const [from, to] = this.group.domain;
    const height = bottom - MARGIN.top;
    const group = svg("g", { class: "bands" });
    let lastText = -Infinity;
    this.group.cycles.forEach((cycle, number) => {
      const start = Math.max(cycle.start, from);
      const end = Math.min(cycle.end, to);
      if (start >= end) return;
      const x = this.toX(start);
      const grace = Math.min(cycle.start + cycle.grace, to);
      if (grace > start) {
        group.append(svg("rect", { class: "grace", x, y: MARGIN.top, width: this.toX(grace) - x, height }));
      }
      if (cycle.start > from) {
        group.append(svg("path", { class: "cycle-line", d: `M${x.toFixed(1)} ${MARGIN.top - 6}V${bottom}` }));
      }
      const middle = (x + this.toX(end)) / 2;
      if (middle - lastText > 14) {
        group.append(svg("text", { class: "cycle-number", x: middle, y: MARGIN.top - 5 }, number + 1));
        lastText = middle;
      }
    });
    return group;
  }

  grid(least, most, toY, bottom) {
    const [from, to] = this.group.domain;
    const right = this.width - MARGIN.right;
    const rows = ticks(least, most, 4, this.options.format.whole).map((value) =>
      svg(
        "g",
        null,
        svg("path", { class: "grid-line", d: `M${MARGIN.left} ${toY(value).toFixed(1)}H${right}` }),
        svg("text", { class: "tick", x: MARGIN.left - 6, y: toY(value) + 3.5, "text-anchor": "end" }, this.tick(value)),
      ),
    );
    const columns = ticks(from, to, Math.max(2, Math.floor(this.width / 70)), true).map((value) =>
      svg("text", { class: "tick", x: this.toX(value), y: this.height - 5, "text-anchor": "middle" }, value),
    );
    return svg(
      "g",
      { class: "grid" },
      rows,
      columns,
      svg("path", { class: "axis", d: `M${MARGIN.left} ${bottom}H${right}` }),
    );
  }

  // --- the cursor, and what it reads

  drawCursor() {
    const epoch = this.group.cursor;
    for (const line of this.lines) {
      const value = epoch === null ? lastValue(line) : valueAt(line, epoch);
      this.values.get(line.label).textContent = this.format(value);
    }
    if (!this.cursor) return;
    const [from, to] = this.group.domain;
    if (epoch === null || epoch < from || epoch > to) {
      replace(this.cursor);
      this.tip.hidden = true;
      return;
    }
    const x = this.toX(epoch);
    const marks = [svg("path", { d: `M${x.toFixed(1)} ${MARGIN.top}V${this.height - MARGIN.bottom}` })];
    for (const line of this.lines) {
      const value = valueAt(line, epoch);
      if (this.isHidden(line) || missing(value)) continue;
      marks.push(svg("circle", { cx: x, cy: this.toY(value), r: 3, "--c": `var(--${line.color})` }));
    }
    replace(this.cursor, marks);
    if (this.group.hovered === this) this.showTip(epoch, x);
    else this.tip.hidden = true;
  }

  showTip(epoch, x) {
    const shown = this.lines.filter((line) => !this.isHidden(line));
    const rows = shown.map((line) =>
      el(
        "div",
        { class: "tip-row", "--c": `var(--${line.color})` },
        el("i"),
        name(line.label, { class: "tip-name" }),
        el("b", null, this.format(valueAt(line, epoch))),
      ),
    );
    replace(this.tip, el("div", { class: "tip-head" }, this.group.describe(epoch)), rows);
    this.tip.hidden = false;
    const left = x > this.width / 2 ? x - this.tip.offsetWidth - 10 : x + 10;
    this.tip.style.left = `${Math.max(0, Math.min(left, this.width - this.tip.offsetWidth))}px`;
    this.group.say(`${this.group.describe(epoch)}: ${rows.map((row) => row.textContent).join(", ")}`);
  }

  // --- pointer and keyboard

  listen() {
    const plot = this.plot;
    let start = null;
    const position = (event) => event.clientX - plot.getBoundingClientRect().left;
    plot.addEventListener("pointermove", (event) => {
      const x = position(event);
      this.group.point(this, Math.round(this.toEpoch(x)));
      if (start !== null) put(this.brush, { x: Math.min(start, x), width: Math.abs(x - start) });
    });
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      // A finger points, and what it reads stays; zooming is for the buttons.
      if (event.pointerType === "touch") {
        this.group.point(this, Math.round(this.toEpoch(position(event))));
        return;
      }
      start = position(event);
      plot.setPointerCapture(event.pointerId);
    });
    const stop = (event, zoom) => {
      if (start === null) return;
      const [low, high] = [start, position(event)].sort((a, b) => a - b).map((x) => Math.round(this.toEpoch(x)));
      const wide = Math.abs(position(event) - start) > 6;
      start = null;
      put(this.brush, { width: 0 });
      if (zoom && wide && high > low) this.group.zoom(low, high);
    };
    plot.addEventListener("pointerup", (event) => stop(event, true));
    plot.addEventListener("pointercancel", (event) => stop(event, false));
    plot.addEventListener("pointerleave", (event) => {
      if (start === null && event.pointerType !== "touch") this.group.point(null, null);
    });
    plot.addEventListener("blur", () => this.group.point(null, null));
    plot.addEventListener("dblclick", () => this.group.reset());
    plot.addEventListener("keydown", (event) => this.group.key(this, event));
  }
}

// A piece of the line, for a legend.
export function swatch(line, width) {
  return svg(
    "svg",
    { width, height: 8, class: "swatch", "aria-hidden": "true" },
    svg("path", { d: `M0 4H${width}`, "stroke-dasharray": line.dash }),
  );
}
