// The page: its tabs, and the address, which holds the question.

import { at, fill } from "./dom.js";
import { connect, leave, open } from "./run/run.js";

const RUN = "run";
const tabs = [...document.querySelectorAll("[role=tab]")];
const nameOf = (tab) => tab.id.slice("tab-".length);

let loaded = null;

/** The tables of stored answers, loaded once they are asked for. */
const table = () => (loaded ??= import("./table/table.js"));

/** Mark a tab as selected. */
function highlight(name) {
  for (const tab of tabs) {
    const chosen = nameOf(tab) === name;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  at("run").hidden = name !== RUN;
  at("panel").hidden = name === RUN;
  at("panel").setAttribute("aria-labelledby", `tab-${name}`);
}

function notice(...said) {
  fill("notice", said);
  at("notice").hidden = !said.length;
}

const failed = (error) => notice(error instanceof Error ? error.message : String(error));

function select(name) {
  highlight(name);
  notice();
  if (name === RUN) {
    loaded?.then((tables) => tables.leave());
    open(new URLSearchParams());
    return;
  }
  leave();
  history.replaceState(null, "", `#tab=${name}`);
  table().then(({ select: chosen }) => chosen(name, highlight)).catch(failed);
}

/** Show the question in the address. */
async function follow() {
  const given = new URLSearchParams(window.location.hash.replace(/^#/, ""));
  notice();
  if (given.has("problem") || tabs.some((tab) => nameOf(tab) === given.get("tab") && given.get("tab") !== RUN)) {
    leave();
    highlight(given.get("tab") ?? "table"); // until the table has loaded
    const known = await (await table()).follow(given, highlight);
    if (known) return;
    notice(`This table has no problem ${given.get("problem").slice(0, 60)}; choose a tab.`);
  }
  highlight(RUN);
  open(given);
}

tabs.forEach((tab, k) => {
  tab.addEventListener("click", () => select(nameOf(tab)));
  tab.addEventListener("keydown", ({ key }) => {
    const moves = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tabs.length - 1 };
    if (!(key in moves)) return;
    const next = tabs[(moves[key] + tabs.length) % tabs.length];
    next.focus();
    select(nameOf(next));
  });
});
at("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the question
  const shown = ["run-answer", "answer"].find((id) => at(id).checkVisibility());
  at(shown ?? "panel").focus();
});
window.addEventListener("hashchange", () => follow().catch(failed));
connect();
if (window.location.protocol === "file:") {
  notice("A browser that opens this page as a file lets it neither compute nor load its data; it needs a file server. Run in its folder: python3 -m http.server --bind 127.0.0.1");
} else {
  follow().catch(failed);
  // after the first answer, which needs the line
  window.setTimeout(() => navigator.serviceWorker?.register("offline.js").catch(() => {}), 5000);
}
