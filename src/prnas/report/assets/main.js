// From the data to the page. `update` may be called again with more of the same run.
class RunPage {
  constructor(kind) {
    this.group = new ChartGroup();
    this.timeline = new Timeline(this.group);
    this.head = el("div");
    this.body = el("main");
    this.cells = kind === "search" ? new CellsView() : null;
    this.extra = el("div");
    this.node = el("div", null, this.head, this.body);
  }

  get groups() { return [this.group]; }

  update(data) {
    const run = data.runs[0], { group } = this;
    patch(this.head, runHead(run, data.group));
    group.done = numEpochs(run);
    group.setEpochs(plannedEpochs(run), run.kind === "search" ? cycleBands(run) : []);
    const charts = run.kind === "search" ? searchCharts(group, run) : trainingCharts(group, run);
    if (!this.body.firstChild) {
      fill(this.body, [el("section", { class: "curves", id: "curves" }, el("h2", null, "Curves"), group.said,
        el("p", { class: "lead" }, `Drag over a chart with the mouse${run.kind === "search" ? ", or choose a cycle," : ""} to zoom all of them; point at (or touch) an epoch to read its values; a name in a legend hides its line. By keyboard: ← → + − 0 on a chart.`),
        el("div", { class: "sticky" }, this.timeline.node),
        chartSection("Learning", run.kind === "search" ? "weights, architecture: while they were trained, each on its half of the images; shaded: grace epochs" : null, charts.learning, "wide"),
        charts.pools ? chartSection("What the pools hold", "steps: the pools that each cycle trained", charts.pools) : null,
        chartSection("Speed and memory", null, charts.machine, charts.machine.length > 4 ? "five" : "")),
        this.cells ? this.cells.node : null, this.extra]);
    }
    if (this.cells) this.cells.update(run);
    else patch(this.extra, confusionSection(run.confusion), genotypeSection(run.genotype, "The cells of the network"));
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

  get groups() { return [...this.views.values()].map((view) => view.group); }

  update(data) {
    const names = uniqueNames(data.runs);
    patch(this.top, severalHead(data), resultsSection(data, names));
    for (const kind of ["search", "training"]) {
      const places = data.runs.map((_, i) => i).filter((i) => data.runs[i].kind === kind);
      if (!places.length) continue;
      if (!this.views.has(kind)) {
        this.views.set(kind, new CompareView(kind));
        this.middle.append(this.views.get(kind).node);
      }
      this.views.get(kind).update(places.map((i) => data.runs[i]), places.map((i) => names[i]));
    }
    patch(this.bottom, genotypesSection(data, names), summedConfusion(data, names));
  }
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const home = document.getElementById("page");
  let page = null, shown = null;
  const update = (news) => {
    // A live group begins with one run and becomes a comparison when the second seed comes.
    const wanted = news.runs.length > 1 ? "comparison" : news.runs[0].kind;
    if (wanted !== shown) {
      const next = wanted === "comparison" ? new ComparePage() : new RunPage(wanted);
      if (page) page.node.replaceWith(next.node); else home.append(next.node);
      [page, shown] = [next, wanted];
    }
    page.update(news);
    const title = news.runs.length > 1 ? plain(news.title || `${news.runs.length} runs`).slice(0, 80) : plain(news.runs[0].name).slice(0, 80);
    document.title = `${title} · prnas`;
    if (news.ended) document.body.dataset.ended = "true"; else delete document.body.dataset.ended;
  };
  update(data);
  if (data.live) home.prepend(follow(update));
  // Printed, all charts fit the paper; back on the screen, they fit the window again.
  const drawAll = () => page.groups.forEach((group) => group.drawNow());
  for (const event of ["beforeprint", "afterprint"]) addEventListener(event, drawAll);
  drawAll();
  document.body.dataset.ready = "true";
}

start();
