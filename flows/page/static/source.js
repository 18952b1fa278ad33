// The data files of the page: the catalogue, and the table of each problem once it is needed.

import { prepare } from "./lookup.js";

async function json(address) {
  const reply = await fetch(new URL(address, import.meta.url));
  if (!reply.ok) throw new Error(`Cannot load ${address}: the server returned the status ${reply.status}.`);
  return reply.json();
}

/** Return the catalogue, and a function that gives the table of a problem by its name. */
export async function open() {
  const catalogue = await json("catalogue.json");
  const tables = new Map();
  const table = (name) => {
    if (!tables.has(name)) {
      const problem = catalogue.problems[name];
      const loading = json(problem.file).then((content) => prepare(problem, content));
      loading.catch(() => tables.delete(name));
      tables.set(name, loading);
    }
    return tables.get(name);
  };
  return { catalogue, table };
}
