// What a searcher asked for: every scored cell as a dot, the best so far, and who was made from whom.
import { el, plain, replace, svg } from "./dom.js";
import { dotPath, PointPlot, spanOf } from "./dots.js";
import { missing, plural, show } from "./format.js";
import { ticks } from "./scale.js";

// A score as people read it: a percentage, or the number itself of a zero-cost proxy.
export const scoreText = (searcher, score) => (searcher?.measure ? show.short(score) : show.exactPercent(score));

const countText = (value) => (value >= 1e5 ? show.millions(value) : show.whole(value));
const FORMATS = {
  images: countText,
  parameters: (value) => show.millions(value),
  macs: (value) => show.millions(value),
};

// Scores against another column of the evaluations: a plot of the run's list.
class ScorePlot extends PointPlot {
  constructor({ title, note, column }) {
    super(title, note, "scatter");
    Object.assign(this, { column, format: FORMATS[column] });
  }

  update(searcher) {
    this.searcher = searcher;
    const best = scoreText(searcher, searcher.best);
    const text = `${this.title}: ${plural(searcher.scores.length, "evaluation")}, best ${best}`;
    this.plot.setAttribute("aria-label", plain(text));
    this.draw();
  }

  draw() {
    if (!this.width || !this.searcher) return;
    const { scores, parents, proxies, measure, macs, entropies } = this.searcher;
    const xs = this.searcher[this.column];
    const proxyValues = (i) => Object.entries(proxies[i] || {}).map(([name, value]) => [name, show.short(value)]);
    this.start(260);
    const [left, right, top, bottom] = [60, this.width - 14, 12, this.height - 26];
    const [from, to] = spanOf(xs, 0.03) || [0, 1];
    const [low, high] = spanOf(scores, 0.06);
    const toX = (value) => left + ((value - from) / (to - from)) * (right - left);
    const toY = (value) => top + ((high - value) / (high - low)) * (bottom - top);
    this.points = scores.flatMap((score, i) =>
      missing(xs[i])
        ? []
        : [
            {
              x: toX(xs[i]),
              y: toY(score),
              number: i + 1,
              row: { name: `evaluation ${i + 1}` },
              what: parents[i] ? `made from ${parents[i]}` : "drawn at random",
              values: [
                ["Score", scoreText(this.searcher, score)],
                ["Parameters", show.millions(this.searcher.parameters[i])],
                ["MACs", show.millions(macs[i])],
                ...(missing(entropies[i]) ? [] : [["Entropy", show.short(entropies[i])]]),
                ...proxyValues(i),
              ],
            },
          ],
    );
    const grid = [
      ticks(low, high, 5).map((value) =>
        svg(
          "g",
          null,
          svg("path", { class: "grid-line", d: `M${left} ${toY(value).toFixed(1)}H${right}` }),
          svg(
            "text",
            { class: "tick", x: left - 6, y: toY(value) + 3.5, "text-anchor": "end" },
            measure ? show.short(value) : `${Number((100 * value).toPrecision(4))} %`,
          ),
        ),
      ),
      ticks(from, to, Math.floor(this.width / 110)).map((value) =>
        svg("text", { class: "tick", x: toX(value), y: this.height - 8, "text-anchor": "middle" }, this.format(value)),
      ),
      svg("path", { class: "axis", d: `M${left} ${bottom}H${right}` }),
    ];
    replace(
      this.plot,
      grid,
      this.lines(toY, right),
      svg("path", {
        class: "dots pale",
        "--c": "var(--blue)",
        d: dotPath(this.points),
        "data-dots": this.points.length,
      }),
      this.mark,
    );
  }

  lines() {
    return null;
  }
}

// Over the evaluations: the best so far as steps, a line from every parent to its child, and the ancestors of the
// best in a stronger one.
class Course extends ScorePlot {
  lines(toY, right) {
    const { bests, parents } = this.searcher;
    const { points } = this;
    let best = null;
    let steps = "";
    points.forEach((point, i) => {
      if (bests[i] === best) return;
      best = bests[i];
      const y = toY(best).toFixed(1);
      steps += steps ? `H${point.x.toFixed(1)}V${y}` : `M${point.x.toFixed(1)} ${y}`;
    });
    const link = (i) => {
      const parent = points[parents[i] - 1];
      return `M${parent.x.toFixed(1)} ${parent.y.toFixed(1)}L${points[i].x.toFixed(1)} ${points[i].y.toFixed(1)}`;
    };
    const children = points.map((_, i) => i).filter((i) => parents[i] && parents[i] <= i);
    const line = ancestors(this.searcher);
    return [
      svg("path", { class: "family", d: children.map(link).join("") || "M0 0", "data-links": children.length }),
      svg("path", {
        class: "family best",
        d:
          line
            .slice(1)
            .map((number) => link(number - 1))
            .join("") || "M0 0",
      }),
      svg("path", { class: "best-so-far", d: `${steps}H${right}`, "data-best": toY(best).toFixed(1) }),
    ];
  }
}

// The numbers of the evaluations from which the best one comes, the first one first.
export function ancestors({ best_number, parents }) {
  const line = [best_number];
  while (parents[line[0] - 1] && parents[line[0] - 1] < line[0]) line.unshift(parents[line[0] - 1]);
  return line;
}

// How far scores of one cell lie apart, where some cells were scored more than once.
function noiseText(searcher) {
  const { noise } = searcher;
  if (!noise) return "";
  const apart = noise.deviation ? `a standard deviation of ${scoreText(searcher, noise.deviation)}` : "no noise at all";
  const cells = noise.cells === 1 ? "1 cell was" : `${show.whole(noise.cells)} cells were`;
  return ` ${cells} scored more than once: their scores have ${apart}.`;
}

// What the choices of a controller have become, where one writes the cells.
function entropyText({ entropies }) {
  const last = entropies.length - 1;
  if (missing(entropies[last])) return "";
  const [from, to] = [entropies[0], entropies[last]].map(show.short);
  return ` The controller's choices had an entropy of ${from} in the first evaluation and of ${to} in the last.`;
}

export class EvaluationsView {
  constructor() {
    this.plots = [];
    this.charts = el("div", { class: "charts costs" });
    this.lead = el("p", { class: "lead" });
    this.node = el(
      "section",
      { class: "evaluations", id: "evaluations", hidden: true },
      el("h2", null, "What the searcher asked for"),
      this.lead,
      this.charts,
    );
  }

  update(searcher) {
    this.node.hidden = !searcher;
    if (!searcher) return;
    const { scores, images, finalists } = searcher;
    const line = ancestors(searcher);
    const best = scores[searcher.best_number - 1];
    const again = `scored again on more images: the best had ${scoreText(searcher, searcher.best)}.`;
    const parts = [
      `${plural(scores.length, "evaluation")}, the worth of ${show.whole(images[images.length - 1])} images.`,
      `The best score, ${scoreText(searcher, best)}, came in evaluation ${searcher.best_number}`,
      line.length > 1 ? `, and its ancestors were ${line.slice(0, -1).join(", ")}.` : ".",
      finalists.length ? ` ${plural(finalists.length, "finalist")} were ${again}` : "",
      entropyText(searcher),
      noiseText(searcher),
    ];
    replace(this.lead, `${parts[0]} ${parts.slice(1).join("")}`);
    if (!this.plots.length) {
      this.plots = searcher.plots.map((plot) => (plot.course ? new Course(plot) : new ScorePlot(plot)));
      replace(this.charts, ...this.plots.map((plot) => plot.node));
    }
    for (const plot of this.plots) plot.update(searcher);
  }
}
