// Live answers, if `privsweep serve` serves the page: all methods that apply, within its limits.

import { bracket } from "./answer.js";
import { grid, html } from "./dom.js";
import { exactly, roundedDown, roundedUp } from "./numbers.js";

const decoded = ({ lower, upper }) => {
  const [low, high] = [lower, upper].map((end) => (end === "inf" ? Infinity : end));
  return { lower: low, upper: high };
};

/** The server's answer to a question: `{lower, upper, confidence, status, methods}`, or an error. */
export async function ask(address, problem, question) {
  const fields = Object.fromEntries(
    Object.entries(question).map(([name, value]) => [name, value === Infinity ? "inf" : value]),
  );
  const reply = await fetch(new URL(address, import.meta.url), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ problem: problem.name, fields }),
  });
  const said = await reply.json().catch(() => ({})); // a server that is too busy does not answer in JSON
  if (!reply.ok) throw new Error(said.error ?? `The server does not answer now: it returned the status ${reply.status}.`);
  return said;
}

/** A live answer as elements: the bracket, and the answer of every method. */
export function told(problem, said) {
  const ends = decoded(said);
  const sure = said.confidence === 1 ? "proved" : `with confidence ${exactly(said.confidence)}`;
  const known = said.status === "ok" && (ends.lower > 0 || ends.upper < Infinity);
  const rows = said.methods
    .filter(({ status }) => status !== "not_applicable")
    .map((each) => {
      const { lower, upper } = decoded(each);
      const shown = each.status === "ok" ? `[${roundedDown(lower)}, ${roundedUp(upper)}]` : each.status;
      return [each.name, shown, `${Number(each.seconds.toPrecision(2))} s`, each.detail];
    });
  return html(
    "div",
    { id: "live" },
    html("p", {}, html("strong", {}, known ? bracket(problem.symbol, ends) : "No method proves anything here."), known ? ` ${sure}, computed now` : ""),
    html("div", { class: "wide" }, grid(["method", problem.asks, "time", "detail"], rows)),
  );
}
