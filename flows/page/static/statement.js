// A statement about the privacy of a training run, to paste into a paper or a model card: the sentences of
// `privsweep epsilon --statement`, which the catalogue holds, with the numbers of an answer of the page.

import { exactly, roundedDown, roundedUp } from "./numbers.js";

/** Whether a problem has a statement: epsilon of a training run at a delta. */
export const hasStatement = (problem) => problem.neighbours !== null;

/** The method of an end with its version and its reference. */
function proof({ methods }, name) {
  const { [name]: known } = methods;
  return known ? `${name}, version ${known.version} (${known.reference})` : name;
}

/** The statement about the answer of a state, or null without a proved upper end. */
export function statement({ catalogue, table, question, found }) {
  const { problem } = table;
  if (!hasStatement(problem) || !found?.upper_method || found.upper === Infinity) return null;
  const { assumed, not_covered: excluded } = catalogue.statement;
  const [lower, upper, delta] = [roundedDown(found.lower), roundedUp(found.upper), exactly(question.delta)];
  const least = found.lower_method ? `; for the worst data sets it is not less than ${lower}` : "";
  const same = !found.lower_method || found.lower_method === found.upper_method;
  const below = same ? "" : `; lower end: ${proof(catalogue, found.lower_method)}`;
  const ends = least && same ? "both ends" : "upper end";
  const fields = Object.entries(question).map(([name, value]) => `${name}=${exactly(value)}`);
  const parts = [
    ["Guarantee", `(${upper}, ${delta})-differential privacy: epsilon is at most ${upper} at delta=${delta}${least}.`],
    ["Unit of privacy", problem.neighbours[question.adjacency]],
    ["Accounted for", `${problem.meaning} Parameters: ${fields.join(" ")}.`],
    ["Proof", `${ends}: ${proof(catalogue, found.upper_method)}${below}.`],
    ["Assumed", assumed],
    ["Not covered", excluded],
    ["Computed by", `privsweep ${catalogue.release}, rounding errors included.`],
  ];
  return parts.map(([name, sentence]) => `${name}: ${sentence}`).join(" ");
}
