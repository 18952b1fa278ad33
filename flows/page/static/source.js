// The data files of the page: the catalogue, and the table of each problem once it is needed.

import { parquetMetadata } from "./hyparquet/metadata.js";
import { parquetRead } from "./hyparquet/read.js";
import { prepare } from "./lookup.js";

async function load(address) {
  const reply = await fetch(new URL(address, import.meta.url));
  if (!reply.ok) throw new Error(`Cannot load ${address}: the server returned the status ${reply.status}.`);
  return reply;
}

/** The columns of a Parquet file. */
async function columnsOf(address) {
  const columns = {};
  const file = await (await load(address)).arrayBuffer();
  const metadata = parquetMetadata(file);
  const rows = Number(metadata.num_rows);
  const onChunk = ({ columnName, columnData, rowStart }) => {
    const column = (columns[columnName] ??= new Array(rows)); // chunks arrive in any order
    for (let k = 0; k < columnData.length; k += 1) column[rowStart + k] = columnData[k];
  };
  await parquetRead({ file, metadata, onChunk });
  return columns;
}

/** The brackets of a problem, and its answers with a confidence below 1, which are the last rows of its file. */
function parts(problem, columns) {
  const { methods } = problem;
  const number = new Map(methods.map((name, k) => [name, k]));
  const first = columns.confidence.findIndex((confidence) => confidence < 1);
  const last = first < 0 ? columns.confidence.length : first;
  const [brackets, stated] = [{}, {}];
  for (const [name, column] of Object.entries(columns)) {
    const values = name.endsWith("_method") ? column.map((method) => number.get(method) ?? -1) : column;
    brackets[name] = values.slice(0, last);
    stated[name] = values.slice(last);
  }
  return { methods, brackets, stated: { ...stated, method: stated.lower_method, point: stated.lower_point } };
}

/** The columns of a problem without rows, which only the engine answers. */
function noRows({ fields }) {
  const ends = ["lower", "upper", "confidence", "lower_method", "upper_method", "lower_point", "upper_point"];
  return Object.fromEntries([...fields.map(({ name }) => name), ...ends].map((name) => [name, []]));
}

/** Return the catalogue, and a function that gives the table of a problem by its name. */
export async function open() {
  const catalogue = await (await load("catalogue.json")).json();
  const tables = new Map();
  const table = (name) => {
    if (!tables.has(name)) {
      const problem = catalogue.problems[name];
      const columns = problem.file ? columnsOf(problem.file) : Promise.resolve(noRows(problem));
      const loading = columns.then((found) => prepare(problem, parts(problem, found)));
      loading.catch(() => tables.delete(name));
      tables.set(name, loading);
    }
    return tables.get(name);
  };
  return { catalogue, table };
}
