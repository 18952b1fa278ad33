// The engine as seen from the page: questions go to a worker, so that the page stays responsive.

let [worker, last] = [null, 0];
const waiting = new Map(); // promises by number of the question

function started() {
  if (worker) return worker;
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    const asked = waiting.get(data.id);
    if (!asked) return;
    if (data.progress) {
      asked.onProgress(data.progress);
      return;
    }
    waiting.delete(data.id);
    if (data.error) asked.reject(new Error(data.error));
    else asked.resolve(data.found);
  };
  worker.onerror = () => stop("The engine of the page could not be started.");
  return worker;
}

/** Ends all computations; their promises fail with this sentence. */
export function stop(sentence = "The computation was stopped.") {
  if (!waiting.size) return;
  worker.terminate();
  worker = null;
  const stopped = [...waiting.values()];
  waiting.clear();
  stopped.forEach(({ reject }) => reject(Object.assign(new Error(sentence), { stopped: true })));
}

/**
 * A proved bracket of a question.
 *
 * @param asked `problem`, its stored name; `fields` by name; `tolerance`, the requested upper / lower - 1; and
 *   perhaps `target`, an epsilon, for the bracket of the smallest noise multiplier that reaches it.
 * @param onProgress Called with `{pass, done, of, seconds}`, about twenty times a second.
 * @returns A promise of `{lower, upper, seconds, detail}`; it fails with one sentence.
 */
export function compute({ problem, fields, tolerance = 0.01, target }, onProgress = () => {}) {
  last += 1;
  const id = last;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject, onProgress });
    started().postMessage({ id, problem, fields, tolerance, target });
  });
}
