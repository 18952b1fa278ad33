// The worker: answers one question after another, and reports progress. The page stops it by ending it.

import { enclose } from "./enclose.js";
import { smallestNoise } from "./noise.js";
import { QuestionError, read } from "./questions.js";

const OFTEN = 50; // milliseconds between reports

onmessage = ({ data }) => {
  const { id, problem, fields, tolerance, target, rates } = data;
  const begun = performance.now();
  let reported = begun;
  const onStep = (progress) => {
    const now = performance.now();
    if (now < reported + OFTEN) return;
    reported = now;
    postMessage({ id, progress: { ...progress, seconds: (now - begun) / 1000 } });
  };
  try {
    const found =
      target === undefined
        ? enclose(read(problem, fields, rates), tolerance, onStep)
        : smallestNoise(problem, fields, target, tolerance, onStep);
    const one = rates === undefined && target === undefined ? { lower: found.lower[0], upper: found.upper[0] } : { rates };
    postMessage({ id, found: { ...found, ...one, seconds: (performance.now() - begun) / 1000 } });
  } catch (error) {
    const invalid = error instanceof QuestionError;
    postMessage({ id, error: invalid ? error.message : `The engine of the page failed: ${error.message}` });
  }
};
