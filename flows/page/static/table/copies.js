// A question and its answer as text to copy: Python, command line, LaTeX, citation, and the privacy statement of
// `privsweep epsilon --statement`, whose sentences the catalogue holds.

import { conditionsOf, sourceOf } from "./answer.js";
import { exactly, roundedDown, roundedUp } from "../numbers.js";

const python = (value) =>
  typeof value !== "number" ? JSON.stringify(value) : Number.isFinite(value) ? exactly(value) : 'float("inf")';

const quoted = (word) => (/^[\w.,+:@%/=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The stored row of an answer with a confidence below 1, which no lookup returns. */
const row = ({ table, stated }) => {
  const view = table.problem.name.replaceAll("-", "_");
  return `from ${view} where point_id = '${stated[0].point}'`;
};

const onlyStated = ({ found, stated }) => !found && stated.length > 0;

/** Whether the copies compute an answer: the headline was computed, or a fresh installation has no store to ask. */
const computes = ({ catalogue, found, tight }) => Boolean(tight) || !found || catalogue.shipped;

function asPython(state) {
  const { table, question } = state;
  if (onlyStated(state)) {
    const query = `    print(store.sql("${row(state)}").to_pylist())`;
    return ["from storage import open_store", "", 'with open_store("store") as store:', query].join("\n");
  }
  const { name } = table.problem;
  if (computes(state)) {
    const given = Object.entries(question).map(([field, value]) => `    ${field}=${python(value)},`);
    return ["import privsweep as ps", "", `print(ps.ask(`, `    "${name}",`, ...given, "))"].join("\n");
  }
  const fields = Object.entries(question).map(([field, value]) => `    ${field}=${python(value)},`);
  return [
    "from privcore import find_problem",
    "from storage import open_store",
    "",
    `question = find_problem("${name}")(`,
    ...fields,
    ")",
    'with open_store("store") as store:',
    "    print(store.lookup(question))",
  ].join("\n");
}

function asCommand(state) {
  const { table, question, found, tight } = state;
  if (onlyStated(state)) return `privsweep sql "${row(state)}"`;
  const words = Object.entries(question).map(([field, value]) => quoted(`${field}=${exactly(value)}`));
  const covered = found && (found.exact || found.upper_method); // `lookup` does not accept a lower end of another problem alone
  const lookup = tight ? "lookup --compute" : "lookup";
  return `privsweep ${covered ? lookup : "ask"} ${table.problem.name} ${words.join(" ")}`;
}

const SPECIAL = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  "<": "\\textless{}",
  ">": "\\textgreater{}",
};

const escaped = (text) => text.replace(/[\\~^<>&%$#_{}]/g, (letter) => SPECIAL[letter] ?? `\\${letter}`);

/** A decimal in LaTeX: 1.5e-8 as a power of ten. */
function power(text) {
  if (text === "inf") return "\\infty";
  const [mantissa, exponent] = text.split("e");
  if (exponent === undefined) return text;
  const ten = `10^{${Number(exponent)}}`;
  return mantissa === "1" ? ten : `${mantissa} \\cdot ${ten}`;
}

function asLatex(state) {
  const { catalogue, table, question, found, stated, tight } = state;
  const { problem } = table;
  const where = problem.fields.map((field) => {
    const value = question[field.name];
    const name = `\\mathrm{${escaped(field.name)}}`;
    if (typeof value !== "number") return `${escaped(field.name)} \\texttt{${escaped(value)}}`;
    return `$${field.latex === "-" ? name : field.latex} = ${power(exactly(value))}$`;
  });
  const bracket = onlyStated(state) && !tight
    ? `${inMath(problem, stated[0])} with confidence ${exactly(stated[0].confidence)}`
    : inMath(problem, tight ?? found);
  const source = tight
    ? catalogue.release
    : [`table ${catalogue.version}`, sourceOf(found ?? stated[0]), ...conditionsOf(state).map(escaped)]
        .filter(Boolean).join(", ");
  return `${bracket} for \\texttt{${problem.name}} at ${where.join(", ")} (privsweep ${source}).`;
}

function inMath({ latex }, found) {
  if (!found) return `$${latex}$ (nothing proved)`;
  const [low, high] = [power(roundedDown(found.lower)), power(roundedUp(found.upper))];
  if (found.lower <= 0 && found.upper < Infinity) return `$${latex} \\le ${high}$`;
  return found.upper === Infinity ? `$${latex} \\ge ${low}$` : `$${latex} \\in [${low}, ${high}]$`;
}

const cited = (key, title, note, ...more) =>
  [`@misc{privsweep-${key},`, `  title = {${title}},`, ...more, `  note = {${note}},`, "}"].join("\n");

function asCitation(state) {
  const { catalogue, found, stated, tight } = state;
  const { release, version, date } = catalogue;
  if (tight) return cited("computed", `privsweep ${release}`, "Bracket computed by the engine of its page");
  const methods = [...new Set((found ? [found.lower_method, found.upper_method] : [stated[0]?.method]).filter(Boolean))];
  const by = methods.map((name) => `${name}: ${catalogue.methods[name]?.reference ?? ""}`);
  const from = sourceOf(found ?? stated[0]);
  const parts = [`Brackets computed until ${date}`, ...by.map(escaped), from, ...conditionsOf(state).map(escaped)].filter(Boolean);
  const note = parts.join("; ");
  return cited(version, `Table ${version} of privsweep ${release}`, note, `  year = {${date.slice(0, 4)}},`);
}

/** Name of the kind of copies that only training runs have. */
export const STATEMENT = "Privacy statement";

/** The kinds of copies of an answer: a function of the state for each, which may return null. */
export const KINDS = {
  Python: asPython,
  "Command line": asCommand,
  LaTeX: asLatex,
  Citation: asCitation,
  [STATEMENT]: statement,
};

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

/** The program, and the lookup tables of the rows. */
function origin({ release, statement: { author } }, { tables }) {
  if (!tables?.length) return `privsweep ${release}, rounding errors included.`;
  return `${author.replace("{}", tables.join(" and "))} Looked up by privsweep ${release}.`;
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
