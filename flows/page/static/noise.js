// The smallest noise multiplier for an epsilon, computed in the browser for the other fields of the question.

import { at, fill, html } from "./dom.js";
import { compute, stop } from "./engine/client.js";
import { covers } from "./engine/questions.js";
import { number, roundedDown, roundedUp } from "./numbers.js";

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
  const bracket = upper === Infinity ? "No noise in [0.001, 1000000] suffices." : `σ ∈ [${low}, ${high}]`;
  return [
    html("p", {}, html("strong", { id: "noise-bracket" }, bracket)),
    upper === Infinity ? null : html("p", { class: "help" }, `Proved: sigma=${high} suffices for the other fields above; ${detail}.`),
  ];
}
