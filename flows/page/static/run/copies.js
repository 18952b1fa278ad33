// The run and its answer as text to copy: Python, the command, a statement for a paper, a citation, and the link.

import { exactly, roundedDown, roundedUp } from "../numbers.js";
import { options } from "./loaders.js";

const quoted = (value) => (typeof value === "string" ? JSON.stringify(value) : value === true ? "True" : exactly(value));

function python({ loader, run }) {
  const given = Object.entries(options(loader, run)).map(([name, value]) => `    ${name}=${quoted(value)},`);
  return ["import privsweep as ps", "", "print(ps.epsilon(", ...given, "))"].join("\n");
}

/** Names and values as options of a command. */
export function optionsText(entries) {
  const words = entries.map(([name, value]) => {
    const option = `--${name.replaceAll("_", "-")}`;
    return value === true ? option : `${option} ${exactly(value)}`;
  });
  return words.join(" ");
}

const command = ({ loader, run }) => `privsweep epsilon ${optionsText(Object.entries(options(loader, run)))}`;

/** The catalogue of the page and the module of statements, which only a statement needs. */
async function statement({ loader, run, found, question }) {
  const [{ statement: said }, { open }] = await Promise.all([import("../table/copies.js"), import("../table/source.js")]);
  const { catalogue } = await open();
  const { [question.problem]: problem, "shuffling-epsilon": shuffling } = catalogue.problems;
  const known = question.problem === "run-epsilon" ? { ...problem, neighbours: shuffling.neighbours, meaning: shuffling.meaning } : problem;
  const asked = { examples: run.n, batch_size: run.batch, ...question.fields };
  return (
    said({ catalogue, table: { problem: known }, question: asked, found: null, tight: found }) ??
    "A statement needs a proved upper end, which this answer lacks."
  );
}

function citation({ loader, run, found }) {
  const words = Object.entries(options(loader, run)).map(([name, value]) => `${name}=${exactly(value)}`).join(" ");
  const note = `Bracket [${roundedDown(found.lower)}, ${roundedUp(found.upper)}] of epsilon, computed by the engine of its page for ${words}`;
  return ["@misc{privsweep-computed,", "  title = {privsweep},", `  note = {${note.replace(/[_%&#$]/g, "\\$&")}},`, "}"].join("\n");
}

/** The kinds of copies: a function of `{loader, run, found, question}`, or a promise, for each. */
export const COPIES = {
  Python: python,
  Command: command,
  Statement: statement,
  Citation: citation,
  Link: () => window.location.href,
};
