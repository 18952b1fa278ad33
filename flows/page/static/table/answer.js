// The answer in words: the bracket, the kind of bound, the method that proved it, and the stored row.

import { at, fill, grid, html, terms } from "../dom.js";
import { PROBLEMS as COMPUTED } from "../engine/questions.js";
import { around, extension, nearest, range, stored as storedValues, unstored } from "./hull.js";
import { exactly, roundedDown, roundedUp } from "../numbers.js";

const VERY = "exactly this question";

/** A bracket with both ends rounded outwards: `ε ∈ [0.06, 0.07]`, or a single end if only this end is known. */
export function bracket(symbol, { lower, upper }) {
  if (lower <= 0 && upper < Infinity) return `${symbol} ≤ ${roundedUp(upper)}`;
  if (upper === Infinity) return `${symbol} ≥ ${roundedDown(lower)}`;
  return `${symbol} ∈ [${roundedDown(lower)}, ${roundedUp(upper)}]`;
}

/** Show the error of an invalid question: one sentence. */
export function showError(sentence) {
  fill("bracket", html("p", { class: "error" }, sentence));
  fill("outside");
  fill("origin");
}

/** A sentence for problems that are answered only at stored numbers, as nothing is proved between them; or null. */
export function onlyStored({ problem, fixed }) {
  const counts = problem.fields.filter(({ name, kind }) => fixed.includes(name) && ["integer", "real"].includes(kind));
  if (!counts.length || COMPUTED.includes(problem.name)) return null;
  const names = new Intl.ListFormat("en").format(counts.map(({ name }) => name.replaceAll("_", " ")));
  return ` There are answers only at the stored values of ${names}; for others, the command line under Copy computes one.`;
}

/** The fields in which a stored problem differs from the question. */
function difference(question, from) {
  const names = Object.keys(from).filter((name) => from[name] !== question[name]);
  return names.map((name) => `${name}=${exactly(from[name])}`).join(" ") || VERY;
}

/** The clause about the lookup tables of the rows behind answers, or "". */
export function sourceOf(...found) {
  const tables = [...new Set(found.flatMap((each) => each?.tables ?? []))];
  return tables.length ? `imported from the table ${tables.join(" and ")}, and not recomputed here` : "";
}

/** The assumption behind a question that takes a column of a file as a distribution, or "". */
export const assumedIn = ({ table: { problem }, question }) =>
  problem.fields.map(({ name, assumed }) => assumed?.[question[name]]).filter(Boolean).join("; ");

/** The neighbouring relation of an audit, or "". */
const relationIn = ({ table: { problem }, question }) =>
  problem.relation?.[(question.alternatives ?? 2) === 2 && question.design !== "pairs" ? "inclusion" : "records"] ?? "";

/** The neighbouring relation and the assumption of an answer, each in a line, if it has any. */
export function conditionsOf(state) {
  const known = { neighbours: relationIn(state), assumed: assumedIn(state) };
  return Object.entries(known).filter(([, text]) => text).map(([name, text]) => `${name}: ${text}`);
}

function certainty(state) {
  const proved = assumedIn(state) ? "proved for the values of the file alone" : "proved, with certainty";
  return sourceOf(state.found) || proved;
}

/**
 * Show an answer.
 *
 * @param state With `catalogue`, `table`, `question`, `found` and `stated`.
 * @param go Called with the question to show next.
 */
export function show(state, go) {
  const { table, question, found, stated } = state;
  const { problem } = table;
  if (found) {
    fill(
      "bracket",
      html("p", { class: "number", id: "number" }, bracket(problem.symbol, found)),
      html("p", { class: "kind" }, `${problem.asks}: ${certainty(state)}; rounded outwards`),
      conditions(state),
    );
  } else if (stated.length) {
    fill("bracket", stated.flatMap((each) => confident(problem, each)), conditions(state));
  } else {
    const none = unstored(table) ? "Nothing is stored for this problem." : "The store has no bound for this question.";
    fill("bracket", html("p", { class: "none", id: "number" }, none));
  }
  fill("outside", uncovered(state, go), found ? simulated(problem, stated) : null);
  fill("origin", found ? origin(state) : stated.length ? reported(state) : null);
}

const conditions = (state) => conditionsOf(state).map((line) => html("p", { class: "stated" }, line));

const by = (each) => [each.method, sourceOf(each)].filter(Boolean).join(", ");

/** Answers with a confidence below 1, if nothing is proved. */
function confident(problem, each) {
  return [
    html("p", { class: "number" }, bracket(problem.symbol, each)),
    html("p", { class: "kind" }, `${problem.asks}: with confidence ${exactly(each.confidence)}, by ${by(each)}`),
  ];
}

/** The same next to a proved bracket, in small type. */
function simulated(problem, stated) {
  return stated.map((each) =>
    html(
      "p",
      { class: "stated" },
      `${bracket(problem.symbol, each)} with confidence ${exactly(each.confidence)}, by ${by(each)}`,
    ),
  );
}

/** The source of answers with a confidence below 1. */
function reported({ catalogue, stated }) {
  const entries = stated.flatMap(({ method, point }) => [
    ["method", [html("code", {}, method), ` ${catalogue.methods[method]?.reference ?? ""}`]],
    ["row", html("code", { class: "id" }, point)],
  ]);
  return terms([...entries, ["table", `${catalogue.version}, ${catalogue.date}`]]);
}

/** If an end is missing: the stored values, and how to compute the missing answer. */
function uncovered({ table, question, found, stated }, go) {
  const { problem } = table;
  const trends = table.moving.length > 0;
  if (unstored(table)) return null; // the engine answers, or says why not
  if (found && ((found.lower_method && found.upper_method) || found.exact || !trends)) return null;
  if (!found && stated.length) return null;
  const values = around(table, question);
  const outside = problem.fields.filter(({ name, trend }) => {
    const [low, high] = [values[name][0], values[name].at(-1)];
    return trend === 0 ? !values[name].includes(question[name]) : question[name] < low || question[name] > high;
  });
  const lacks = found ? `No stored problem proves ${found.upper_method ? "a lower" : "an upper"} end here. ` : "";
  const places = outside.map(({ name }) => `${name} ${range(values[name])}`).join("; ");
  const each = problem.fields.every(({ name }) => values[name].includes(question[name]));
  const inside = each ? "Each value is stored, but not this combination." : "The values are between stored ones, but no stored combination applies.";
  const where = places ? `Stored is ${places}.` : inside;
  const near = found ? null : nearest(table, question);
  const button = near
    ? html("button", { type: "button", id: "nearest" }, `Ask the nearest: ${difference(question, near)}`)
    : null;
  button?.addEventListener("click", () => go(near));
  const file = html(
    "details",
    {},
    html("summary", {}, "Compute it"),
    html("p", {}, "Save as extend.toml:"),
    html("pre", { id: "extension", tabindex: "0" }, extension(problem, question)),
    html("p", {}, "then, in the folder of the store:"),
    html("pre", { tabindex: "0" }, "privsweep plan extend.toml\nprivsweep run extend.toml\nprivsweep page build"),
  );
  return html("div", { class: "uncovered" }, html("p", {}, lacks + where), button ? html("p", {}, button) : null, file);
}

/** The methods of the ends, their rows, and their table. */
function origin({ catalogue, table, question, found }) {
  const { brackets } = table;
  const ends = ["lower", "upper"].filter((end) => found[`${end}_method`]);
  const proof = (also) =>
    found[also] ? `convexity in delta, with the stored ${difference(question, found[also])}` : "monotonicity";
  const same = ends.length === 2 && !found.lower_also && !found.upper_also && found.lower_row === found.upper_row && found.lower_method === found.upper_method;
  const entries = (same ? ["upper"] : ends).flatMap((end) => {
    const name = found[`${end}_method`];
    const from = difference(question, found[`${end}_from`]);
    const said = same ? "both ends" : `${end} end`;
    return [
      [`${said} by`, [html("code", {}, name), ` ${catalogue.methods[name]?.reference ?? ""}`]],
      [`${said} from`, from === VERY ? `${from}, stored` : `the stored ${from}, by ${proof(`${end}_also`)}`],
      [same ? "row" : `${end} row`, html("code", { class: "id" }, brackets[`${end}_point`][found[`${end}_row`]])],
    ];
  });
  const { axes, fields } = table.problem;
  const differs = (name) => ends.some((end) => found[`${end}_from`][name] !== question[name]);
  const irrelevant = fields.filter(({ name }) => !axes.some(({ factors }) => factors.includes(name)));
  const proofs = [...axes, ...irrelevant.map(({ name, proof }) => ({ factors: [name], proof }))]
    .filter(({ factors }) => factors.some(differs))
    .map(({ factors, proof }) => ({ name: factors.join("*"), proof }));
  const digits = [
    ["lower end", found.lower_method ? html("code", { id: "lower" }, exactly(found.lower)) : null],
    ["upper end", found.upper_method ? html("code", { id: "upper" }, exactly(found.upper)) : null],
    ["as it grows", proofs.map(({ name, proof }) => html("p", {}, `${name}: ${proof}`))],
  ].filter(([, text]) => text && text.length !== 0);
  return [
    html("p", { class: "help" }, "Source of the stored bracket:"),
    terms([
      ["adjacency", question.adjacency],
      ...entries,
      ...(found.tables.length ? [["imported", `from the table ${found.tables.join(" and ")}, computed by its author`]] : []),
      ["table", `${catalogue.version}, ${catalogue.date}`],
    ]),
    html("details", {}, html("summary", {}, "All digits, and why it holds"), terms(digits)),
  ];
}

/** Show the table of fields: the stored values of each, its proved trend, and its domain. */
export function showBox(table) {
  const values = storedValues(table);
  const empty = unstored(table);
  at("box-title").textContent = empty ? "Fields" : "Stored values";
  if (empty) {
    const allowed = table.problem.fields.map(({ name, domain, unit }) => [name, domain, unit]);
    fill("box", grid(["field", "allowed", "unit"], allowed));
    return;
  }
  const rows = table.problem.fields.map((field) => [
    field.name,
    range(values[field.name]),
    field.trend === 0 ? "only as stored" : `${table.problem.asks} ${field.trend > 0 ? "grows" : "falls"}`,
    field.domain,
    field.unit,
  ]);
  fill("box", grid(["field", "stored", "as it grows", "allowed", "unit"], rows));
}
