// From the data to the page. `update` may be called again with more of the same run.
import { CellsView } from "./cells.js";
import { ChartGroup } from "./charts.js";
import { CompareView, confusionSections, genotypesSection, resultsSection } from "./compare.js";
import { confusionSection } from "./confusion.js";
import { el, fill, patch, plain } from "./dom.js";
import { EvaluationsView } from "./evaluations.js";
import { runHead, severalHead } from "./head.js";
import { follow } from "./live.js";
import { genotypeSection } from "./picture.js";
import { StudyPage } from "./study.js";
import { Timeline } from "./timeline.js";
import { truthSection } from "./truth.js";

class RunPage {
  constructor(kind) {
    this.group = new ChartGroup("");
    this.timeline = new Timeline(this.group);
    this.head = el("div");
    this.body = el("main");
    this.cells = kind === "search" ? new CellsView() : null;
    this.evaluations = kind === "search" ? new EvaluationsView() : null;
    this.extra = el("div");
    this.node = el("div", null, this.head, this.body);
  }

  get groups() {
    return [this.group, ...(this.evaluations ? this.evaluations.plots : [])];
  }

  update(data) {
    const [run] = data.runs;
    const curves = data.curves[run.kind];
    patch(this.head, runHead(run, data.group));
    this.group.update(curves);
    if (!this.body.firstChild) {
      this.charts = this.curves(run, curves);
      fill(this.body, [this.evaluations?.node, this.charts, this.cells?.node, this.extra]);
    }
    if (this.cells) {
      // Where cells were scored one by one, no supernet was trained.
      this.charts.hidden = this.cells.node.hidden = run.without_supernet;
      this.evaluations.update(run.searcher);
      if (!run.without_supernet) this.cells.update(run);
      const found = run.without_supernet ? genotypeSection(run.genotype, "The cell that was found") : null;
      patch(this.extra, found, truthSection(run.truth));
    } else
      patch(
        this.extra,
        confusionSection(run.confusion, "Confusion matrix"),
        genotypeSection(run.genotype, "The cells of the network"),
      );
  }

  curves(run, { sections }) {
    const { group, timeline } = this;
    const cycle = run.kind === "search" ? ", or choose a cycle," : "";
    const help =
      `Drag over a chart with the mouse${cycle} to zoom all of them; point at (or touch) an epoch to read its ` +
      "values; a name in a legend hides its line. By keyboard: ← → + − 0 on a chart.";
    return el(
      "section",
      { class: "curves", id: "curves" },
      el("h2", null, "Curves"),
      group.said,
      el("p", { class: "lead" }, help),
      el("div", { class: "sticky" }, timeline.node),
      group.nodes(sections),
    );
  }
}

class ComparePage {
  constructor() {
    this.top = el("div");
    this.bottom = el("div");
    this.views = new Map();
    this.middle = el("div");
    this.node = el("div", null, this.top, el("main", null, this.middle, this.bottom));
  }

  get groups() {
    return [...this.views.values()].map((view) => view.group);
  }

  update(data) {
    patch(this.top, severalHead(data), resultsSection(data));
    for (const kind of ["search", "training"].filter((name) => data.curves[name])) {
      if (!this.views.has(kind)) {
        this.views.set(kind, new CompareView(kind));
        this.middle.append(this.views.get(kind).node);
      }
      this.views.get(kind).update(data.curves[kind]);
    }
    patch(this.bottom, genotypesSection(data), confusionSections(data));
  }
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const home = document.getElementById("page");
  let page = null;
  let shown = null;
  const update = (news) => {
    const several = news.runs.length > 1;
    // A live group begins with one run and becomes a comparison when the second seed comes.
    const wanted = news.study ? "study" : several ? "comparison" : news.runs[0].kind;
    if (wanted !== shown) {
      const next = news.study ? new StudyPage() : several ? new ComparePage() : new RunPage(wanted);
      if (page) page.node.replaceWith(next.node);
      else home.append(next.node);
      [page, shown] = [next, wanted];
    }
    page.update(news);
    const title = several || news.study ? news.title || `${news.runs.length} runs` : news.runs[0].name;
    document.title = `${plain(title).slice(0, 80)} · prnas`;
    if (news.ended) document.body.dataset.ended = "true";
    else delete document.body.dataset.ended;
  };
  update(data);
  if (data.live) home.prepend(follow(update));
  // Printed, all charts fit the paper; back on the screen, they fit the window again.
  const drawAll = () => {
    for (const group of page.groups) group.drawNow();
  };
  for (const event of ["beforeprint", "afterprint"]) addEventListener(event, drawAll);
  drawAll();
  document.body.dataset.ready = "true";
}

start();
