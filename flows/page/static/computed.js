// The bracket that the browser computes: progress with a button to stop, then the headline of the answer.

import { bracket, importedIn } from "./answer.js";
import { at, fill, html } from "./dom.js";
import { compute, stop } from "./engine/client.js";
import { PROBLEMS } from "./engine/questions.js";
import { roundedDown, roundedUp } from "./numbers.js";

const PAUSE = 300; // milliseconds after the last change of the question

/** The relative width of a computed bracket; a delta is several times as sensitive as an epsilon. */
export const tolerance = (name) => (name.endsWith("-delta") ? 0.01 : 0.001);

let [timer, number] = [0, 0];

/** Whether a stored bracket is as narrow as a computed one. */
export const narrow = (found, name) => found !== null && found.lower > 0 && found.upper <= found.lower * (1 + tolerance(name));

/** Whether a stored and a computed bracket do not intersect, so that one of them is wrong. */
export const contradicts = (found, tight) => found !== null && (tight.lower > found.upper || found.lower > tight.upper);

/** What follows from a contradiction between a stored bracket and a computed one. */
export const reported = (found) => (importedIn(found) ? `The stored one was ${importedIn(found)}.` : "Please report it.");

/** Ends the computation of an earlier question, and removes its bracket. */
export function forget() {
  window.clearTimeout(timer);
  number += 1;
  stop();
  at("answer").classList.remove("tight");
  fill("engine");
}

/**
 * Compute a bracket of a new question if the stored one is wide, or offer to compute it.
 *
 * @param problem Entry of the catalogue.
 * @param question Values of its fields.
 * @param found The stored bracket, or null.
 * @param shown Called with the computed bracket once it is the headline.
 * @returns A promise, kept when nothing is to be computed any more: `tight`, the bracket or null, and whether a person
 *   `stopped` it.
 */
export function tighten(problem, question, found, shown) {
  forget();
  const nothing = Promise.resolve({ tight: null, stopped: false });
  if (!PROBLEMS.includes(problem.name)) return nothing;
  const start = () => run(problem, question, found, shown);
  if (!narrow(found, problem.name)) {
    return new Promise((settle) => {
      timer = window.setTimeout(() => settle(start()), PAUSE);
    });
  }
  const button = html("button", { type: "button", id: "tighten" }, "Check it: compute it in this browser");
  button.addEventListener("click", start);
  fill("engine", html("p", {}, button));
  return nothing;
}

async function run(problem, question, found, shown) {
  const mine = number;
  const bar = html("progress", { max: 1, value: 0, "aria-label": "progress of the computation" });
  const button = html("button", { type: "button", id: "stop" }, "Stop");
  button.addEventListener("click", () => stop());
  fill("engine", html("p", { class: "progress" }, "Computing in this browser ", bar, " ", button));
  try {
    const asked = { problem: problem.name, fields: question, tolerance: tolerance(problem.name) };
    const tight = await compute(asked, ({ done, of }) => bar.setAttribute("value", done / of));
    if (mine === number) {
      showTight(problem, found, tight);
      shown(tight);
    }
    return { tight, stopped: false };
  } catch (error) {
    if (mine === number) fill("engine", html("p", { class: "help", id: "not-computed" }, error.message));
    return { tight: null, stopped: error.stopped === true };
  }
}

function showTight(problem, found, tight) {
  const seconds = tight.seconds < 0.1 ? "less than 0.1 s" : `${tight.seconds.toFixed(1)} s`;
  const stored = found === null ? "" : `[${roundedDown(found.lower)}, ${roundedUp(found.upper)}]`;
  const compared = contradicts(found, tight)
    ? html("p", { class: "error" }, `The stored bracket ${stored} contradicts it: one of the two is wrong. ${reported(found)}`)
    : null;
  at("answer").classList.add("tight");
  fill(
    "engine",
    html("p", { class: "number", id: "tight" }, bracket(problem.symbol, tight)),
    html("p", { class: "kind" }, `${problem.asks}: proved, computed in this browser in ${seconds}; rounded outwards`),
    html("p", { class: "help" }, `${tight.detail[0].toUpperCase()}${tight.detail.slice(1)}.`),
    compared,
  );
}
