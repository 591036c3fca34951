import { el, replace } from "./dom.js";

export function toolButton(label, title, onclick) {
  return el("button", { type: "button", class: "tool", title, "aria-label": title, onclick }, label);
}

// The strip above the charts: where one is among the epochs, and buttons to go elsewhere.
export class Timeline {
  constructor(group) {
    this.group = group;
    this.where = el("span", { class: "where", "data-where": true });
    this.track = el("div", { class: "track", role: "group", "aria-label": "Zoom to a cycle" });
    this.all = toolButton("All", "Show all epochs", () => group.reset());
    this.node = el(
      "div",
      { class: "timeline" },
      this.track,
      el(
        "div",
        { class: "tools" },
        this.where,
        toolButton("←", "Earlier epochs", () => group.pan(-0.5)),
        toolButton("→", "Later epochs", () => group.pan(0.5)),
        toolButton("−", "Zoom out", () => group.zoomBy(2)),
        toolButton("+", "Zoom in", () => group.zoomBy(0.5)),
        this.all,
      ),
    );
    group.listeners.push(() => this.update());
  }

  update() {
    const { group } = this;
    const [from, to] = group.domain;
    this.where.textContent = `epochs ${Math.floor(from) + 1}–${Math.round(to)} of ${group.end}`;
    this.all.disabled = group.isWhole;
    const key = JSON.stringify(group.cycles);
    if (key !== this.key) {
      this.key = key;
      this.buttons = group.cycles.map((cycle, number) => this.cycleButton(cycle, number));
      this.window = el("div", { class: "window" });
      replace(this.track, this.buttons, this.window);
    }
    this.buttons.forEach((button, number) => {
      const cycle = group.cycles[number];
      button.classList.toggle("ahead", group.done !== undefined && cycle.start >= group.done);
      button.setAttribute("aria-pressed", String(cycle.start === from && cycle.end === to && !group.isWhole));
    });
    this.window.style.left = `${(100 * from) / group.end}%`;
    this.window.style.width = `${(100 * (to - from)) / group.end}%`;
    this.window.hidden = group.isWhole;
    this.track.hidden = !group.cycles.length;
  }

  cycleButton(cycle, number) {
    const { group } = this;
    const grace = cycle.grace ? `, the first ${cycle.grace} without architecture steps` : "";
    const label = `Cycle ${number + 1}: epochs ${cycle.start + 1} to ${cycle.end}${grace}`;
    const button = el(
      "button",
      {
        type: "button",
        class: "cycle-button",
        title: label,
        "aria-label": label,
        onclick: () =>
          button.getAttribute("aria-pressed") === "true" ? group.reset() : group.zoom(cycle.start, cycle.end),
      },
      el("span", { class: "cycle-grace" }),
      el("span", { class: "cycle-label" }, number + 1),
    );
    button.style.flexGrow = cycle.end - cycle.start;
    button.firstChild.style.width = `${(100 * cycle.grace) / (cycle.end - cycle.start)}%`;
    return button;
  }
}
