// Computed in the browser, with a button to stop: the answer, answers along the axis of the chart, and the noise
// multiplier for an epsilon.

import { bracket, sourceOf } from "./answer.js";
import { at, fill, html } from "../dom.js";
import { compute, stop } from "../engine/client.js";
import { covers, PROBLEMS } from "../engine/questions.js";
import { reach } from "./hull.js";
import { number, roundedDown, roundedUp } from "../numbers.js";

const PAUSE = 300; // milliseconds after the last change of the question

/** The relative width of a computed bracket; a delta is several times as sensitive as an epsilon. */
export const tolerance = (name) => (name.endsWith("-delta") ? 0.01 : 0.001);

let [timer, current] = [0, 0];

/** Whether a stored bracket is as narrow as a computed one. */
export const narrow = (found, name) => found !== null && found.lower > 0 && found.upper <= found.lower * (1 + tolerance(name));

/** Whether a stored and a computed bracket do not intersect, so that one of them is wrong. */
export const contradicts = (found, tight) => found !== null && (tight.lower > found.upper || found.lower > tight.upper);

/** What follows from a contradiction between a stored bracket and a computed one. */
export const reported = (found) => (sourceOf(found) ? `The stored one was ${sourceOf(found)}.` : "Please report it.");

/** Ends the computation of an earlier question, and removes its bracket. */
export function forget() {
  window.clearTimeout(timer);
  current += 1;
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
  const mine = current;
  const bar = html("progress", { max: 1, value: 0, "aria-label": "progress of the computation" });
  const button = html("button", { type: "button", id: "stop" }, "Stop");
  button.addEventListener("click", () => stop());
  fill("engine", html("p", { class: "progress" }, "Computing in this browser ", bar, " ", button));
  try {
    const asked = { problem: problem.name, fields: question, tolerance: tolerance(problem.name) };
    const tight = await compute(asked, ({ done, of }) => bar.setAttribute("value", done / of));
    if (mine === current) {
      showTight(problem, found, tight);
      shown(tight);
    }
    return { tight, stopped: false };
  } catch (error) {
    if (mine === current) fill("engine", html("p", { class: "help", id: "not-computed" }, error.message));
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

const POINTS = 13; // along the axis
const TOLERANCE = 0.02;
const LOGARITHMIC = 3; // ratio of the largest to the smallest value

let known = { question: null, field: null, points: [] };

/** The computed brackets of a question over a field, for `drawChart`. */
export const curveOf = (question, field) => (known.question === question && known.field === field ? known.points : []);

/** Values over the range of a field and the question. */
export function places(values, asked, whole) {
  const all = [...values, asked].filter(Number.isFinite);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const ratios = low > 0 && high / low >= LOGARITHMIC;
  const found = Array.from({ length: POINTS }, (_, k) => {
    const share = k / (POINTS - 1);
    const x = ratios ? low * (high / low) ** share : low + (high - low) * share;
    const rounded = Number(x.toPrecision(3));
    return Math.min(Math.max(whole ? Math.round(rounded) : rounded, low), high);
  });
  return [...new Set(found)];
}

/**
 * Offer to compute brackets along the axis.
 *
 * @param table From `prepare`.
 * @param question The question, whose other fields stay.
 * @param field Entry of the catalogue.
 * @param changed Called after each computed bracket.
 */
export function offerCurve(table, question, field, changed) {
  if (known.question === question && known.field === field) return; // computing, or computed
  known = { question: null, field: null, points: [] };
  if (!covers(table.problem.name, question)) {
    fill("curve");
    return;
  }
  const button = html("button", { type: "button", id: "curve-start" }, `Compute along ${field.name.replaceAll("_", " ")}`);
  button.addEventListener("click", () => trace(table, question, field, changed));
  fill("curve", button);
}

async function trace(table, question, field, changed) {
  const mine = { question, field, points: [] };
  known = mine;
  const button = html("button", { type: "button" }, "Stop");
  button.addEventListener("click", () => stop());
  fill("curve", "Computing in this browser ", button);
  let said = null;
  for (const x of places(reach(table, field), question[field.name], field.kind === "integer")) {
    const fields = { ...question, [field.name]: x };
    try {
      const { lower, upper } = await compute({ problem: table.problem.name, fields, tolerance: TOLERANCE });
      if (known !== mine) return;
      mine.points.push({ from: x, to: x, lower, upper });
      changed();
    } catch (error) {
      if (known !== mine) return;
      said = error.message;
      if (error.stopped) break;
    }
  }
  fill("curve", mine.points.length ? "Thick bars: computed in this browser." : said);
}

let [asked, latest] = [null, 0];

const covered = ({ name, asks, fields }, question) =>
  asks === "epsilon" && fields.some((field) => field.name === "sigma") && covers(name, question);

/** Show the section for a question, or hide it; `question` is null for an error in the form. */
export function offerNoise(problem, question) {
  asked = question && covered(problem, question) ? { problem: problem.name, fields: question } : null;
  latest += 1;
  at("noise-section").hidden = asked === null;
  fill("noise-found");
}

/** Connect the form of the section. */
export function connectNoise() {
  at("noise-find").addEventListener("click", () => find());
  at("noise-epsilon").addEventListener("keydown", ({ key }) => key === "Enter" && find());
}

async function find() {
  latest += 1;
  const mine = latest;
  const target = number(at("noise-epsilon").value);
  if (!(target > 0 && target <= 10000)) {
    fill("noise-found", html("p", { class: "error" }, "Expected an epsilon in (0, 10000]."));
    return;
  }
  const button = html("button", { type: "button" }, "Stop");
  button.addEventListener("click", () => stop());
  fill("noise-found", html("p", {}, "Computing in this browser ", button));
  let shown;
  try {
    shown = words(await compute({ ...asked, target }));
  } catch (error) {
    shown = [html("p", { class: "help" }, error.message)];
  }
  if (mine === latest) fill("noise-found", shown);
}

function words({ lower, upper, detail }) {
  const [low, high] = [roundedDown(lower), roundedUp(upper)];
  const sentence = upper === Infinity ? "No noise in [0.001, 1000000] suffices." : `σ ∈ [${low}, ${high}]`;
  return [
    html("p", {}, html("strong", { id: "noise-bracket" }, sentence)),
    upper === Infinity ? null : html("p", { class: "help" }, `Proved: sigma=${high} suffices for the other fields above; ${detail}.`),
  ];
}
