// The loaders of training code, and the question about epsilon of a run with each.

import { DomainError, real, value, whole } from "../fields.js";
import { exactly } from "../numbers.js";
import { rate, sound, steps } from "../sizes.js";

const NUMBERS = [
  whole("n", "examples", 2, 1e12),
  whole("batch", "the batch size", 1, 1e12),
  whole("epochs", "epochs", 1, 1e6),
  real("noise", "the noise multiplier", 1e-3, 1e6),
  { ...real("delta", "delta", 1e-300, 1), upper_open: true, domain: "[1e-300, 1)" },
];

/**
 * The run in the texts of the form: `n`, `batch`, `epochs`, `noise`, `delta`, and `replaced`.
 *
 * @throws DomainError
 */
export function read(texts) {
  const numbers = NUMBERS.map((field) => [field.name, value(field, texts[field.name] ?? "")]);
  const run = { ...Object.fromEntries(numbers), replaced: texts.change === "replaced" };
  if (!sound(run.n, run.batch)) {
    throw new DomainError("batch", `Expected a batch size of at most the ${exactly(run.n)} examples, got ${exactly(run.batch)}.`);
  }
  return run;
}

const down = ({ n, batch }) => Number(steps(n, batch, false));
const up = ({ n, batch }) => Number(steps(n, batch, true));
const left = ({ n, batch }) => n % batch;

/** The relation if one example is left out or replaced; with batches of a fixed size, a gradient of 0 leaves it out. */
const zeroed = ({ replaced }) => (replaced ? "replace-one" : "zero-out");

const phase = (name, fields) => `${name}(${Object.entries(fields).map(([field, value]) => `${field}=${exactly(value)}`).join(",")})`;

/** The question about shuffled epochs with more fields of a phase. */
const shuffled = (run, more) => ({
  problem: "run-epsilon",
  fields: {
    phases: phase("shuffling", { sigma: run.noise, steps: down(run), epochs: run.epochs, redraw: "each-epoch", ...more }),
    adjacency: zeroed(run),
    delta: run.delta,
  },
});

const common = ({ noise, epochs, delta }) => ({ sigma: noise, epochs, delta });

/** Whether an epoch with drop_last leaves out examples. */
export const drops = (run) => left(run) > 0;

const bins = (run, redraw) => ({
  problem: "balls-in-bins-epsilon",
  fields: { ...common(run), steps: down(run), participations: 1, redraw, adjacency: run.replaced ? "replace-one" : "add-remove" },
});

/**
 * The loaders, with the steps of an epoch rounded to the safe side where the code may round in both ways. `word` is that of --sampling, `code` that of users, `more` options of the command; `ask` gives the
 * question of a run, or a sentence why it has no answer; `wide` a question with a wider bracket; `title` names the sampler.
 */
export const LOADERS = [
  {
    key: "shuffling",
    word: "shuffling",
    title: "shuffled",
    code: "DataLoader(shuffle=True)",
    help: "a new order in each epoch",
    more: { keep_last: true },
    ask: (run) => {
      const rest = left(run);
      return shuffled(run, { batch: run.batch, ...(rest ? { kept: rest / run.n } : {}) });
    },
    // without the batch size the upper end is larger: that of no amplification
    wide: (run) => ({
      problem: "shuffling-epsilon",
      fields: { ...common(run), steps: down(run), redraw: run.epochs === 1 ? "one-epoch" : "each-epoch", adjacency: zeroed(run) },
    }),
  },
  {
    key: "shuffling-drop-last",
    word: "shuffling",
    title: "shuffled, drop_last",
    code: "DataLoader(shuffle=True, drop_last=True)",
    help: "the same, and the last batch is dropped unless it is full",
    more: { drop_last: true },
    ask: (run) =>
      drops(run)
        ? shuffled(run, { dropped: left(run) / run.n })
        : `drop_last drops nothing, since ${exactly(run.batch)} divides ${exactly(run.n)}: the answer is that of shuffle=True. With one example less, every epoch would leave some out, and a smaller epsilon would be proved.`,
  },
  {
    key: "poisson",
    word: "poisson",
    title: "Poisson",
    code: "Opacus poisson_sampling=True",
    help: "each example by its own coin, in every step, at a rate of one over the steps",
    more: {},
    steps: (run) => ({ steps: up(run), sampling_probability: 1 / up(run) }),
    ask: (run) => ({
      problem: "poisson-epsilon",
      fields: {
        ...common(run), steps: up(run), sampling_probability: 1 / up(run), adjacency: run.replaced ? "replace-one" : "add-remove",
      },
    }),
  },
  {
    key: "fixed-size",
    word: "fixed-size",
    title: "fixed size",
    code: "random.sample(data, b) in every step",
    help: "b different examples, drawn again in every step",
    more: {},
    ask: (run) => ({
      problem: "fixed-size-epsilon",
      fields: { ...common(run), steps: up(run), sampling_probability: rate(run.n, run.batch), adjacency: zeroed(run) },
    }),
  },
  {
    key: "with-replacement",
    word: "with-replacement",
    title: "with replacement",
    code: "RandomSampler(replacement=True)",
    help: "b draws in every step, with repetitions",
    more: {},
    ask: (run) => ({
      problem: "with-replacement-epsilon",
      fields: { ...common(run), steps: up(run), examples: run.n, batch_size: run.batch, adjacency: zeroed(run) },
    }),
  },
  {
    key: "allocation",
    word: "allocation",
    title: "random allocation",
    code: "one random step of an epoch for each example",
    help: "drawn again in each epoch",
    more: {},
    ask: (run) =>
      run.replaced
        ? bins(run, "each-epoch")
        : { problem: "allocation-epsilon", fields: { ...common(run), steps: down(run), participations: 1, adjacency: "add-remove" } },
  },
  {
    key: "balls-in-bins",
    word: "balls-in-bins",
    title: "kept bins",
    code: "jax_privacy BallsInBinsSampling",
    help: "each example in one random step, the same in all epochs",
    more: { redraw: "once" },
    ask: (run) => bins(run, run.epochs === 1 ? "each-epoch" : "once"),
  },
  {
    key: "none",
    word: "none",
    title: "no amplification",
    code: "DataLoader(shuffle=False)",
    help: "the order is the same in all epochs, and known",
    more: {},
    ask: (run) => ({
      problem: "unamplified-epsilon",
      fields: { ...common(run), steps: up(run), participations: 1, adjacency: zeroed(run) },
    }),
  },
];

/** The choice of a reader who does not know the loader. */
export const UNKNOWN = "unknown";

export const loaderOf = (key) => LOADERS.find((each) => each.key === key);

/** The neighbouring relation of a loader's answer in words. */
export function relation(loader, run) {
  const asked = loader.ask(run);
  const word = typeof asked === "string" ? "" : asked.fields.adjacency;
  return {
    "add-remove": "add or remove one example",
    "zero-out": "the gradient of one example becomes 0",
    "replace-one": "one example is replaced by another",
  }[word] ?? "";
}

const ROUNDED = ["fixed-size", "with-replacement", "allocation", "balls-in-bins"];

/** The steps of an epoch for which an answer holds, if batches do not fill the epoch and the code may round in another way. */
export function roundedSteps(loader, run) {
  const asked = loader.ask(run);
  return left(run) && ROUNDED.includes(loader.key) ? asked.fields.steps : null;
}

/** The options of a run by name, as in the command line and in Python. */
export function options(loader, run) {
  const asked = loader.ask(run);
  const more = { ...loader.more };
  if (run.epochs === 1) delete more.redraw;
  const redraw = loader.word === "shuffling" && run.epochs > 1 ? { redraw: "each-epoch" } : {};
  return {
    sampling: loader.word,
    sigma: run.noise,
    ...(loader.steps?.(run) ?? { examples: run.n, batch_size: run.batch }),
    epochs: run.epochs,
    delta: run.delta,
    adjacency: typeof asked === "string" ? zeroed(run) : asked.fields.adjacency,
    ...redraw,
    ...more,
  };
}
