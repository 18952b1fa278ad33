// Where numbers come from: the catalogue, the table of each problem once it is needed, and live answers, if
// `privsweep serve` serves the page: all methods that apply, within its limits.

import { bracket } from "./answer.js";
import { grid, html } from "../dom.js";
import { prepare } from "./lookup.js";
import { exactly, roundedDown, roundedUp } from "../numbers.js";

const GZIP = 0x1f; // the first byte of compressed data

/** The content of a JSON file; a compressed one may arrive unpacked, since some servers declare the compression. */
async function load(address) {
  const reply = await fetch(new URL(address, document.baseURI));
  if (!reply.ok) throw new Error(`Cannot load ${address}: the server returned the status ${reply.status}.`);
  const data = await reply.arrayBuffer();
  const packed = new Uint8Array(data)[0] === GZIP;
  const { body } = new Response(data);
  try {
    return await new Response(packed ? body.pipeThrough(new DecompressionStream("gzip")) : body).json();
  } catch (error) {
    throw new Error(`Cannot load ${address}: the file is damaged.`, { cause: error });
  }
}

/** The columns of a problem without rows, which only the engine answers. */
function noRows({ fields }) {
  const ends = ["lower", "upper", "confidence", "lower_method", "upper_method", "lower_point", "upper_point"];
  const none = Object.fromEntries([...fields.map(({ name }) => name), ...ends].map((name) => [name, []]));
  return { brackets: none, stated: none };
}

/** Return the catalogue, and a function that gives the table of a problem by its name. */
export async function open() {
  const catalogue = await load("catalogue.json");
  const tables = new Map();
  const table = (name) => {
    if (!tables.has(name)) {
      const problem = catalogue.problems[name];
      const content = problem.file ? load(problem.file) : Promise.resolve(noRows(problem));
      const loading = content.then((found) => prepare(problem, found));
      loading.catch(() => tables.delete(name));
      tables.set(name, loading);
    }
    return tables.get(name);
  };
  return { catalogue, table };
}

const decoded = ({ lower, upper }) => {
  const [low, high] = [lower, upper].map((end) => (end === "inf" ? Infinity : end));
  return { lower: low, upper: high };
};

/** The server's answer to a question: `{lower, upper, confidence, status, methods}`, or an error. */
export async function ask(address, problem, question) {
  const fields = Object.fromEntries(
    Object.entries(question).map(([name, value]) => [name, value === Infinity ? "inf" : value]),
  );
  const reply = await fetch(new URL(address, document.baseURI), {
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
