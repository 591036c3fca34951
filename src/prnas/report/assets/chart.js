// One chart: lines over epochs. Zoom and cursor belong to the group and are shared by all.
const MARGIN = { left: 46, right: 10, top: 16, bottom: 20 };

class Chart {
  // options: id, title, note, format, low, high (fixed bounds), whole, height
  constructor(group, options) {
    this.group = group;
    this.options = options;
    this.series = [];
    this.hidden = new Set();
    this.legend = el("div", { class: "legend" });
    this.plot = svg("svg", { class: "plot", tabindex: "0", role: "img", "data-chart": options.id });
    this.tip = el("div", { class: "tooltip", hidden: true });
    this.node = el("figure", { class: "chart", "data-chart-box": options.id },
      el("figcaption", null, el("span", { class: "chart-title" }, options.title),
        options.note ? el("span", { class: "chart-note" }, options.note) : null),
      this.legend, el("div", { class: "plot-box" }, this.plot, this.tip));
    this.width = 0;
    this.height = options.height || 150;
    this.listen();
  }

  setSeries(series) {
    const names = series.map((one) => one.name).join("\n");
    const same = names === this.series.map((one) => one.name).join("\n");
    this.series = series;
    if (!same) this.buildLegend();
    this.plot.setAttribute("aria-label",
      plain(`${this.options.title}: ${series.map((one) => `${one.name} ${this.options.format(lastValue(one))}`).join(", ")}`));
  }

  buildLegend() {
    this.values = new Map();
    const focused = this.legend.contains(document.activeElement) ? document.activeElement.dataset.series : null;
    replace(this.legend, this.series.map((one) => {
      const value = el("span", { class: "legend-value" });
      this.values.set(one.name, value);
      return el("button", {
        type: "button", class: "legend-item", "data-series": one.name, "--c": `var(--${one.color})`,
        "aria-pressed": String(!this.isHidden(one)), title: `Show or hide ${plain(one.name).slice(0, 80)}`,
        onclick: (event) => this.toggle(one, event.currentTarget),
      }, svg("svg", { width: 16, height: 8, class: "swatch", "aria-hidden": "true" },
        svg("path", { d: "M0 4H16", "stroke-dasharray": one.dash })), name(one.name, { class: "legend-name" }), value);
    }));
    if (focused !== null) [...this.legend.children].find((one) => one.dataset.series === focused)?.focus({ preventScroll: true });
  }

  isHidden(one) { return this.hidden.has(one.name) || this.group.hidden.has(one.name); }

  toggle(one, button) {
    if (!this.hidden.delete(one.name)) this.hidden.add(one.name);
    button.setAttribute("aria-pressed", String(!this.hidden.has(one.name)));
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
    return MARGIN.left + (epoch - from) / (to - from) * (this.width - MARGIN.left - MARGIN.right);
  }

  toEpoch(x) {
    const [from, to] = this.group.domain;
    return from + (x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right) * (to - from);
  }

  bounds(shown) {
    const { low, high } = this.options;
    const found = range(shown, ...this.group.domain) || [0, 1];
    let [least, most] = [low ?? found[0], high ?? found[1]];
    if (most - least < 1e-12) { const room = Math.abs(most) * 0.1 || 1; least = low ?? least - room; most = high ?? most + room; }
    const room = (most - least) * 0.06;
    return [low ?? (least >= 0 && least - room < 0 ? 0 : least - room), high ?? most + room];
  }

  draw() {
    if (!this.width) return;
    const shown = this.series.filter((one) => !this.isHidden(one));
    const [least, most] = this.bounds(shown);
    const bottom = this.height - MARGIN.bottom;
    const toX = (x) => this.toX(x);
    const toY = (y) => MARGIN.top + (most - y) / (most - least) * (bottom - MARGIN.top);
    this.toY = toY;
    const [from, to] = this.group.domain;
    const clip = `clip-${this.options.id}`;
    const lines = shown.map((one) => {
      const { path, dots } = linePath(one, from, to, toX, toY);
      return svg("g", { class: "series", "--c": `var(--${one.color})` },
        svg("path", { d: path || "M0 0", "stroke-dasharray": one.dash, class: one.thin ? "thin" : null }),
        dots ? svg("path", { d: dots, class: "dots" }) : null);
    });
    this.cursor = svg("g", { class: "cursor" });
    this.brush = svg("rect", { class: "brush", y: MARGIN.top, height: bottom - MARGIN.top, width: 0, x: 0 });
    put(this.plot, { width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}` });
    replace(this.plot,
      svg("defs", null, svg("clipPath", { id: clip }, svg("rect", {
        x: MARGIN.left, y: MARGIN.top - 3, width: this.width - MARGIN.left - MARGIN.right, height: bottom - MARGIN.top + 6 }))),
      this.bands(bottom), this.grid(least, most, toY, bottom),
      svg("g", { "clip-path": `url(#${clip})` }, lines), this.brush, this.cursor);
    this.drawCursor();
  }

  // Cycles with their numbers; grace epochs are shaded.
  bands(bottom) {
    const [from, to] = this.group.domain;
    const height = bottom - MARGIN.top;
    const group = svg("g", { class: "bands" });
    let lastText = -Infinity;
    this.group.cycles.forEach((cycle, number) => {
      const start = Math.max(cycle.start, from), end = Math.min(cycle.end, to);
      if (start >= end) return;
      const grace = Math.min(cycle.start + cycle.grace, to);
      if (grace > start) {
        fill(group, [svg("rect", { class: "grace", x: this.toX(start), y: MARGIN.top, width: this.toX(grace) - this.toX(start), height })]);
      }
      const x = this.toX(start);
      if (cycle.start > from) fill(group, [svg("path", { class: "cycle-line", d: `M${x.toFixed(1)} ${MARGIN.top - 6}V${bottom}` })]);
      const middle = (x + this.toX(end)) / 2;
      if (middle - lastText > 14) {
        fill(group, [svg("text", { class: "cycle-number", x: middle, y: MARGIN.top - 5 }, number + 1)]);
        lastText = middle;
      }
    });
    return group;
  }

  grid(least, most, toY, bottom) {
    const [from, to] = this.group.domain;
    const right = this.width - MARGIN.right;
    const rows = ticks(least, most, 4, this.options.whole).map((value) => svg("g", null,
      svg("path", { class: "grid-line", d: `M${MARGIN.left} ${toY(value).toFixed(1)}H${right}` }),
      svg("text", { class: "tick", x: MARGIN.left - 6, y: toY(value) + 3.5, "text-anchor": "end" },
        (this.options.tick || this.options.format)(value))));
    const columns = ticks(from, to, Math.max(2, Math.floor(this.width / 70)), true).map((value) =>
      svg("text", { class: "tick", x: this.toX(value), y: this.height - 5, "text-anchor": "middle" }, value));
    return svg("g", { class: "grid" }, rows, columns,
      svg("path", { class: "axis", d: `M${MARGIN.left} ${bottom}H${right}` }));
  }

  // --- the cursor, and what it reads

  drawCursor() {
    const epoch = this.group.cursor;
    for (const one of this.series) {
      const value = epoch === null ? lastValue(one) : valueAt(one, epoch);
      this.values.get(one.name).textContent = this.options.format(value);
    }
    if (!this.cursor) return;
    const [from, to] = this.group.domain;
    if (epoch === null || epoch < from || epoch > to) { replace(this.cursor); this.tip.hidden = true; return; }
    const x = this.toX(epoch);
    const marks = [svg("path", { d: `M${x.toFixed(1)} ${MARGIN.top}V${this.height - MARGIN.bottom}` })];
    for (const one of this.series) {
      const value = valueAt(one, epoch);
      if (this.isHidden(one) || missing(value)) continue;
      marks.push(svg("circle", { cx: x, cy: this.toY(value), r: 3, "--c": `var(--${one.color})` }));
    }
    replace(this.cursor, marks);
    if (this.group.hovered === this) this.showTip(epoch, x); else this.tip.hidden = true;
  }

  showTip(epoch, x) {
    const rows = this.series.filter((one) => !this.isHidden(one)).map((one) => el("div", { class: "tip-row", "--c": `var(--${one.color})` },
      el("i"), name(one.name, { class: "tip-name" }), el("b", null, this.options.format(valueAt(one, epoch)))));
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
    const place = (event) => event.clientX - plot.getBoundingClientRect().left;
    plot.addEventListener("pointermove", (event) => {
      const x = place(event);
      this.group.point(this, Math.round(this.toEpoch(x)));
      if (start !== null) put(this.brush, { x: Math.min(start, x), width: Math.abs(x - start) });
    });
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      // A finger points, and what it reads stays; zooming is for the buttons.
      if (event.pointerType === "touch") { this.group.point(this, Math.round(this.toEpoch(place(event)))); return; }
      start = place(event);
      plot.setPointerCapture(event.pointerId);
    });
    const stop = (event, zoom) => {
      if (start === null) return;
      const [low, high] = [start, place(event)].sort((a, b) => a - b).map((x) => Math.round(this.toEpoch(x)));
      const wide = Math.abs(place(event) - start) > 6;
      start = null;
      put(this.brush, { width: 0 });
      if (zoom && wide && high > low) this.group.zoom(low, high);
    };
    plot.addEventListener("pointerup", (event) => stop(event, true));
    plot.addEventListener("pointercancel", (event) => stop(event, false));
    plot.addEventListener("pointerleave", (event) => { if (start === null && event.pointerType !== "touch") this.group.point(null, null); });
    plot.addEventListener("blur", () => this.group.point(null, null));
    plot.addEventListener("dblclick", () => this.group.reset());
    plot.addEventListener("keydown", (event) => this.group.key(this, event));
  }
}
