// The engine as seen from the page: questions go to a worker, so that the page stays responsive.

let [worker, last] = [null, 0];
const waiting = new Map(); // promises by number of the question

function started() {
  if (worker) return worker;
  worker = globalThis.engine ?? new Worker(new URL("engine.js", import.meta.url)); // the page may have started one
  globalThis.engine = null;
  worker.onmessage = ({ data }) => {
    const one = waiting.get(data.id);
    if (!one) return;
    if (data.progress) {
      one.onProgress(data.progress);
      return;
    }
    waiting.delete(data.id);
    if (data.error) one.reject(new Error(data.error));
    else one.resolve(data.found);
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
  return asked({ problem, fields, tolerance, target }, onProgress);
}

/**
 * Proved brackets of the largest true positive rates of membership tests of a run.
 *
 * @param asked `problem`, the stored name of a problem about epsilon or delta, whose run counts; `fields` by name,
 *   without epsilon and delta; `rates`, the false positive rates, in (0, 1); and `tolerance`.
 * @param onProgress As for `compute`.
 * @returns A promise of `{rates, lower, upper, seconds, detail}` with lists; it fails with one sentence.
 */
export function tradeoff({ problem, fields, rates, tolerance = 0.01 }, onProgress = () => {}) {
  return asked({ problem, fields, tolerance, rates }, onProgress);
}

function asked(question, onProgress) {
  last += 1;
  const id = last;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject, onProgress });
    started().postMessage({ id, ...question });
  });
}
