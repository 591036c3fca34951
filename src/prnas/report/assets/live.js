// A page that `prnas watch` serves asks it for news; what comes changes the page in place.
import { el } from "./dom.js";

const ASK_EVERY = 2000;

export function follow(update) {
  const status = el("span", { class: "live", role: "status" }, "live");
  let tag = null;
  let failures = 0;
  const say = (text, className) => {
    if (status.textContent !== text) status.textContent = text;
    status.className = `live ${className}`;
  };
  const ask = async () => {
    try {
      const headers = tag ? { "If-None-Match": tag } : {};
      const answer = await fetch("data.json", { headers, cache: "no-store" });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag");
        update(await answer.json());
      } else if (answer.status !== 304) throw new Error(String(answer.status));
      failures = 0;
      say(document.body.dataset.ended ? "finished" : "live", document.body.dataset.ended ? "over" : "");
    } catch {
      failures += 1;
      if (failures > 1) say("no answer: is prnas watch still running?", "lost");
    }
    setTimeout(ask, document.body.dataset.ended ? 5 * ASK_EVERY : ASK_EVERY);
  };
  setTimeout(ask, ASK_EVERY / 4);
  return status;
}
