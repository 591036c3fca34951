// The paper's Figure 3: what a search's epochs and cycles say.
const KERNEL_COLORS = ["blue", "orange", "green", "red", "purple", "sky", "gray"];
const DASHES = [null, "6 3", "2 3", "9 3 2 3", "1 3"];
const ROLES = ["normal", "reduction"];

function cycleBands(run) {
  let start = 0;
  return run.schedule.map(([epochs, grace]) => {
    const band = { start, end: start + epochs, grace };
    start += epochs;
    return band;
  });
}

function epochLine(run, column, name, color, dash) {
  const ys = run.epochs[column] || [];
  return { name, color, dash, xs: ys.map((_, i) => i + 1), ys };
}

function batchLine(run, name, color, dash) {
  if (!run.batches || !run.batches.length) {
    const line = epochLine(run, "batch", name, color, dash);
    return { ...line, xs: line.xs.map((x) => x - 1), step: true, until: numEpochs(run) };  // from the epoch's start
  }
  return { name, color, dash, step: true, until: numEpochs(run), xs: run.batches.map(([x]) => x), ys: run.batches.map(([, y]) => y) };
}

// A statistic of the pools that each cycle trained; the last one is what the search ended with.
function poolLine(run, role, value, name, color, dash) {
  const bands = cycleBands(run), pools = run.cycles.pools[role];
  const xs = [], ys = [];
  pools.forEach((pool, number) => {
    const start = number < bands.length ? bands[number].start : bands.length ? bands[bands.length - 1].end : number;
    xs.push(start);
    ys.push(value(pool) ?? null);
  });
  return { name, color, dash, step: true, until: Math.max(numEpochs(run), xs[xs.length - 1] || 0), xs, ys };
}

function parentLine(run, role, name, color, dash) {
  const bands = cycleBands(run), ys = run.cycles.parents[role];
  return { name, color, dash, xs: ys.map((_, i) => bands[i] ? bands[i].end : i + 1), ys };
}

function kernelSizes(run) {
  const sizes = new Set();
  for (const role of ROLES) for (const pool of run.cycles.pools[role]) for (const size of Object.keys(pool.kernels)) sizes.add(Number(size));
  return [...sizes].sort((a, b) => a - b);
}

const SPEEDS = [
  { id: "batch", title: "Batch size", format: show.whole, low: 0 },
  { id: "seconds", title: "Seconds per epoch", format: show.seconds, tick: show.short, low: 0 },
  { id: "speed", title: "Images per second", format: show.whole, low: 0 },
  { id: "memory", title: "Peak memory", format: show.memory, low: 0 },
];

function speedCharts(group, run) {
  return SPEEDS.map((options) => group.chart(options, [
    options.id === "batch" ? batchLine(run, "batch size", "blue") : epochLine(run, options.id, options.title.toLowerCase(), "blue")]));
}

function searchCharts(group, run) {
  const accuracy = { id: "accuracy", title: "Accuracy", format: show.percent, tick: show.share, height: 210 };
  const loss = { id: "loss", title: "Loss", format: show.fixed(3), tick: show.short, height: 210 };
  const scores = (what) => [
    epochLine(run, `weights_${what}`, "weights", "blue"),
    epochLine(run, `architecture_${what}`, "architecture", "sky", DASHES[1]),
    epochLine(run, `validation_${what}`, "validation", "red")];
  const types = Object.entries(run.cycles.colors);
  const shareOf = (type) => (pool) => Object.keys(pool.types).length ? pool.types[type] || 0 : null;
  const shares = { format: show.percent, tick: show.share, low: 0, high: 1 };
  const perCell = (id, title, line) => ROLES.map((role) => group.chart(
    { ...shares, id: `${id}-${role}`, title: `${title}, ${role} cell` }, line(role)));
  const both = (line) => [line("normal", "normal cell", "blue", null), line("reduction", "reduction cell", "red", DASHES[1])];
  const found = run.cycles.discoverable;
  return {
    learning: [group.chart(accuracy, scores("accuracy")), group.chart(loss, scores("loss")),
      group.chart({ id: "lr", title: "Learning rate", format: show.rate, low: 0, height: 210 }, [epochLine(run, "lr", "learning rate of the weights", "blue")])],
    machine: speedCharts(group, run),
    pools: [
      ...perCell("types", "Operations", (role) => types.map(([type, color], i) =>
        poolLine(run, role, shareOf(type), type, color, DASHES[i % DASHES.length]))),
      ...perCell("kernels", "Kernel sizes of convs", (role) => kernelSizes(run).map((size, i) =>
        poolLine(run, role, (pool) => Object.keys(pool.kernels).length ? pool.kernels[size] || 0 : null, `${size}×${size}`,
          KERNEL_COLORS[i % KERNEL_COLORS.length], DASHES[i % DASHES.length]))),
      group.chart({ id: "similarity", title: "Similarity within a pool", format: show.fixed(2), low: 0, high: 1 },
        both((role, ...rest) => poolLine(run, role, (pool) => pool.similarity, ...rest))),
      group.chart({ id: "parents", title: "Probability of the parents", format: show.percent, tick: show.share, low: 0 },
        both((role, ...rest) => parentLine(run, role, ...rest))),
      group.chart({ id: "discovered", title: "Operations discovered", note: found ? `of ${found}` : null, format: show.whole, low: 0 },
        both((role, ...rest) => poolLine(run, role, (pool) => pool.discovered, ...rest)))],
  };
}

function chartSection(title, note, charts, className) {
  return el("section", { class: "chart-section" }, el("h3", null, title, note ? el("small", null, note) : null),
    el("div", { class: `charts ${className || ""}` }, charts.map((chart) => chart.node)));
}
