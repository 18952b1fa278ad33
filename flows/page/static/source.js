// The data files of the page: the catalogue, and the table of each problem once it is needed.

import { prepare } from "./lookup.js";

const GZIP = 0x1f; // the first byte of compressed data

/** The content of a JSON file; a compressed one may arrive unpacked, since some servers declare the compression. */
async function load(address) {
  const reply = await fetch(new URL(address, import.meta.url));
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
