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

/** The proofs of both ends of a stored bracket, in words. */
function proofs(catalogue, { lower_method: below, upper_method: above }) {
  if (!below || below === above) return `${below ? "both ends" : "upper end"}: ${proof(catalogue, above)}`;
  return `upper end: ${proof(catalogue, above)}; lower end: ${proof(catalogue, below)}`;
}

const ENGINE = "both ends: the engine of the page, a second program for the algorithm of docs/certified.md";

/** The program, and the lookup tables of imported rows. */
function origin({ release, statement: { imported: sentence } }, { imported }) {
  if (!imported?.length) return `privsweep ${release}, rounding errors included.`;
  return `${sentence.replace("{}", imported.join(" and "))} Looked up by privsweep ${release}.`;
}

/** The statement about the answer of a state, or null without a proved upper end; a computed bracket comes first. */
export function statement({ catalogue, table, question, found, tight }) {
  const { problem } = table;
  const known = tight ?? (found?.upper_method ? found : null);
  if (!hasStatement(problem) || known === null || known.upper === Infinity) return null;
  const { assumed, not_covered: excluded } = catalogue.statement;
  const [lower, upper, delta] = [roundedDown(known.lower), roundedUp(known.upper), exactly(question.delta)];
  const least = tight || found.lower_method ? `; for the worst data sets it is not less than ${lower}` : "";
  const fields = Object.entries(question).map(([name, value]) => `${name}=${exactly(value)}`);
  const parts = [
    ["Guarantee", `(${upper}, ${delta})-differential privacy: epsilon is at most ${upper} at delta=${delta}${least}.`],
    ["Unit of privacy", problem.neighbours[question.adjacency]],
    ["Accounted for", `${problem.meaning} Parameters: ${fields.join(" ")}.`],
    ["Proof", `${tight ? ENGINE : proofs(catalogue, found)}.`],
    ["Assumed", assumed],
    ["Not covered", excluded],
    ["Computed by", origin(catalogue, known)],
  ];
  return parts.map(([name, sentence]) => `${name}: ${sentence}`).join(" ");
}
