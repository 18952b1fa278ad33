// The answer in words: the headline, and the consequence for the reader of an accountant for Poisson sampling.

import { exactly, roundedDown, roundedUp } from "../numbers.js";

const DIGITS = 3;
const ONE_NUMBER = 0.002; // relative width of a bracket that is printed as one number

export const low = (x) => roundedDown(x, DIGITS);
export const high = (x) => roundedUp(x, DIGITS);

/** Both ends as a text of three digits, or one number that is rounded up. */
export function brief({ lower, upper }) {
  if (upper === Infinity) return `at least ${low(lower)}`;
  if (!(lower > 0)) return `at most ${high(upper)}`;
  return upper <= lower * (1 + ONE_NUMBER) ? high(upper) : `${low(lower)} – ${high(upper)}`;
}

const NARROW = 0.05; // relative width up to which an accountant prints about the upper end

/**
 * The bracket of Poisson sampling if an accountant prints about its upper end: it is narrow, and one example is left out,
 * since accountants do not answer for a replaced one; else null.
 */
export function accountant(rows) {
  const { found, question } = rows.find(({ loader }) => loader.key === "poisson");
  const usual = found && question.fields.adjacency === "add-remove";
  return usual && found.upper <= found.lower * (1 + NARROW) ? found : null;
}

/**
 * The headline: epsilon, and how it is known.
 *
 * @param found The bracket.
 * @param steps The steps of an epoch for which it holds, if the code may take one more or less; or null.
 */
export function headline(found, steps = null) {
  const { lower, upper } = found;
  const where = steps === null ? "" : ` for ${exactly(steps)} steps an epoch`;
  if (upper === Infinity) return [`ε at least ${low(lower)}`, "proved; nothing is proved from above"];
  if (!(lower > 0)) return [`ε at most ${high(upper)}`, "proved; nothing is proved from below"];
  if (upper <= lower * (1 + ONE_NUMBER)) return [`ε is ${high(upper)}`, `rounded up; both ends proved${where}`];
  return [`ε between ${low(lower)} and ${high(upper)}`, `both ends proved${where}`];
}

/** The number that an accountant for Poisson sampling prints. */
export const printed = (poisson) => high(poisson.upper);

/**
 * Return the consequence for somebody whose accountant assumes Poisson sampling: texts, and `strong` ones.
 *
 * @param loader The chosen loader.
 * @param own Its bracket.
 * @param poisson From `accountant`.
 */
export function consequence(loader, own, poisson) {
  if (!poisson) return [];
  if (loader.key === "poisson") {
    return ["This is the sampler that most accountants assume, so the number that they print is about this run."];
  }
  const said = `A Poisson accountant prints about ${printed(poisson)} for this run. `;
  if (own.lower > poisson.upper) {
    return [
      said,
      { strong: `With this loader it does not hold: ε is at least ${low(own.lower)}.` },
      ` Draw Poisson batches, and ${printed(poisson)} is true.`,
    ];
  }
  if (own.upper <= poisson.upper) return [said, `With this loader ε is at most ${high(own.upper)}, so that number holds.`];
  return [said, "These brackets do not decide whether it holds with this loader; report the upper end."];
}

/** A given rate as a text, without loss: 0.1 % for 0.001. */
export const rateText = (x) => `${exactly(Number((100 * x).toPrecision(12)))} %`;

/** A probability as a text of two digits, rounded to the safe side. */
export function percent(x, up) {
  const text = up ? roundedUp(100 * x, 2) : roundedDown(100 * x, 2);
  return `${text} %`;
}

/** The sentence about the best attack at a false positive rate. */
export function attacked({ lower, upper }, poisson) {
  const [least, most] = [percent(lower, false), percent(Math.min(upper, 1), true)];
  const both = least === most ? `the best one finds ${most} of the members` : `some test finds at least ${least} of the members, and none finds more than ${most}`;
  return `${both}${poisson ? `; under Poisson sampling at most ${percent(Math.min(poisson.upper, 1), true)}` : ""}.`;
}

/** The run in a few words, for titles and captions. */
export const runText = (run) =>
  `σ ${exactly(run.noise)}, n ${exactly(run.n)}, b ${exactly(run.batch)}, ${exactly(run.epochs)} epoch${run.epochs === 1 ? "" : "s"}`;
