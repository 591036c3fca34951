// What NAS-Bench-201 says of the cell that a search found.
import { el, table } from "./dom.js";
import { show } from "./format.js";

const ofHundred = (value) => `${show.hundredths(value)} %`;

export function truthSection(truth) {
  if (!truth) return null;
  const rows = truth.map((of) => [
    of.title,
    ofHundred(of.test),
    show.whole(of.rank),
    show.hundredths(of.regret),
    ofHundred(of.validation),
    ofHundred(of.test_12),
    show.millions(of.parameters),
    show.millions(of.macs),
  ]);
  const headings = ["", "Test", "Rank", "Regret", "Validation", "After 12 epochs", "Parameters", "MACs"];
  return el(
    "section",
    { class: "truth", id: "truth" },
    el("h2", null, "The truth about the cell"),
    el(
      "p",
      { class: "lead" },
      "NAS-Bench-201 has trained every one of its 15,625 cells. Test and validation accuracy are those after 200 ",
      "epochs, rank and regret (how much better the best cell is) by test accuracy, in its own trainings on these three ",
      "sets: they say nothing of other images. The search never sees any of it.",
    ),
    table(headings, rows, "results"),
  );
}
