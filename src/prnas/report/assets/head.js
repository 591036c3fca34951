// The head: what one wants first.
import { el, name } from "./dom.js";
import { scoreText } from "./evaluations.js";
import { duration, plural, show } from "./format.js";

export function tile(label, value, note) {
  return el(
    "div",
    { class: "tile" },
    el("span", { class: "tile-label" }, label),
    el("span", { class: "tile-value" }, value),
    note ? el("span", { class: "tile-note" }, note) : null,
  );
}

function copyButton(text) {
  const button = el("button", { type: "button", class: "copy", "aria-label": "Copy this command" }, "Copy");
  button.dataset.command = text; // as it was typed, for the clipboard only
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Not allowed here: select it, so that the keyboard can copy it.
      getSelection().selectAllChildren(button.previousSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  return button;
}

export function commandList(commands) {
  return el(
    "dl",
    { class: "commands" },
    commands.map(([what, command]) => [
      el("dt", null, what),
      el("dd", null, el("code", null, name(command)), copyButton(command)),
    ]),
  );
}

export function factList(facts) {
  return el(
    "dl",
    { class: "facts" },
    facts.map(([what, value]) => el("div", null, el("dt", null, what), el("dd", null, name(value)))),
  );
}

function networkTiles(network, next) {
  if (!network) return [];
  const size = next ? "when trained next: " : network.paper ? "paper's size: " : "";
  const cells = network.blocks ? "blocks" : "cells";
  const shape = network.channels && network.cells ? [`${network.channels} channels, ${network.cells} ${cells}`] : [];
  const assumed = network.assumed ? " assumed" : "";
  const classes = network.classes ? [`${plural(network.classes, "class", "classes")}${assumed}`] : [];
  const [height, width] = Array.isArray(network.image) ? network.image : [network.image, network.image];
  const image = network.image ? [`for ${width}×${height} pixels`] : [];
  return [
    tile("Parameters", show.millions(network.parameters), size + [...shape, ...classes].join(", ")),
    tile("MACs", show.millions(network.macs), [...shape, ...image].join(", ")),
  ];
}

function runTiles(run) {
  const { done, planned } = run;
  const cycles = run.kind === "search" && !run.without_supernet ? plural(run.schedule.length, "cycle") : null;
  const mean = run.averaged_epochs ? `mean of the last ${plural(run.averaged_epochs, "epoch")}` : "so far";
  const averaged = run.kept_epoch ? `weights of epoch ${run.kept_epoch}, the best by validation` : mean;
  const last = run.searcher?.finalists.length ? "of the best finalist" : "of the best cell";
  const result = run.without_supernet
    ? tile("Score", scoreText(run.searcher, run.searcher?.best), `${run.scored_by}, of the best cell`)
    : run.searcher
      ? tile("Score", scoreText(run.searcher, run.searcher.best), `${last}, by the supernet`)
      : run.kind === "search"
        ? tile("Validation accuracy", show.exactPercent(run.validation), "of the supernet, last epoch")
        : tile("Test error", show.exactPercent(run.test_error), averaged);
  return el(
    "div",
    { class: "tiles" },
    result,
    networkTiles(run.next || run.network, run.next),
    tile(
      "Time",
      duration(run.seconds),
      done && !run.without_supernet ? `${show.seconds(run.seconds / done)} an epoch` : null,
    ),
    tile(run.without_supernet ? "Evaluations" : "Epochs", run.ended ? String(done) : `${done} of ${planned}`, cycles),
    run.without_supernet ? null : tile("Peak memory", show.memory(run.memory), null),
  );
}

function runState(run) {
  const { done, planned } = run;
  if (run.ended) return el("span", { class: "state ended" }, "finished");
  return el(
    "span",
    { class: "state" },
    planned ? `not finished: ${Math.floor((100 * done) / planned)} %` : "not finished",
  );
}

// `group`: the name of the folder of seeds that the run is of.
export function runHead(run, group) {
  const kind = run.kind === "search" ? "Search" : "Training of a final network";
  return el(
    "header",
    { class: "head" },
    el("p", { class: "kind" }, kind, group ? [", of ", name(group)] : null),
    el("h1", null, name(run.name, { class: "run-name" }), " ", runState(run)),
    run.description ? el("p", { class: "description" }, name(run.description)) : null,
    runTiles(run),
    el("div", { class: "details" }, factList(run.facts), commandList(run.commands)),
  );
}

export function severalHead(data) {
  const { facts, commands } = data.head;
  const state = el("span", { class: `state ${data.ended ? "ended" : ""}` }, data.ended ? "finished" : "not finished");
  const title = data.title ? [name(data.title, { class: "run-name" }), " "] : null;
  return el(
    "header",
    { class: "head" },
    el("p", { class: "kind" }, data.group === null ? "Comparison" : "Several seeds"),
    el("h1", null, title, el("span", null, plural(data.runs.length, "run")), " ", state),
    facts.length || commands.length
      ? el("div", { class: "details several" }, factList(facts), commands.length ? commandList(commands) : null)
      : null,
  );
}
