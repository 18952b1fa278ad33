// Answers of the engine for the form, one after another: a new question lets go of those that nobody waits for.

import { compute, stop, tradeoff } from "../engine/client.js";
import { covers } from "../engine/questions.js";

const GRACE = 400; // milliseconds for a computation that is no longer wanted, before its worker ends
const KEPT = 400; // answers that are remembered

/** A question that is no longer asked. */
export class Stale extends Error {}

const known = new Map(); // answers by question
let [generation, busy, running] = [0, Promise.resolve(), 0];

/** Begin a new question: earlier ones are stale. Returns a function that says whether it is still asked. */
export function renew() {
  generation += 1;
  const mine = generation;
  window.setTimeout(() => {
    if (running && running !== generation) stop();
  }, GRACE);
  return () => mine === generation;
}

/** End the computations; the question stays. */
export const halt = () => stop();

async function answered(key, current, asking) {
  if (known.has(key)) return known.get(key);
  const turn = busy.then(async () => {
    if (!current()) throw new Stale();
    if (known.has(key)) return known.get(key);
    running = generation;
    try {
      const found = await asking();
      if (known.size >= KEPT) known.delete(known.keys().next().value);
      known.set(key, found);
      return found;
    } catch (error) {
      throw current() ? error : new Stale();
    } finally {
      running = 0;
    }
  });
  busy = turn.catch(() => {});
  return turn;
}

/** Whether the engine answers a question. */
export const answers = ({ problem, fields }) => covers(problem, fields);

/**
 * The bracket of epsilon of a question from `loaders.js`.
 *
 * @param question `problem` and `fields`.
 * @param tolerance Requested upper / lower - 1.
 * @param current From `renew`.
 * @param onProgress As in `compute`.
 * @throws Stale If another question was asked meanwhile.
 */
export const bracketOf = (question, tolerance, current, onProgress) =>
  answered(JSON.stringify([question, tolerance]), current, () => compute({ ...question, tolerance }, onProgress));

/** The brackets of the largest true positive rate of any test, by false positive rate. */
export const attackOf = (question, rates, current) =>
  answered(JSON.stringify([question, rates]), current, () => tradeoff({ ...question, rates }));

/** The bracket of the smallest noise multiplier for a target. */
export const noiseOf = (question, target, current) =>
  answered(JSON.stringify([question, "noise", target]), current, () => compute({ ...question, target }));
