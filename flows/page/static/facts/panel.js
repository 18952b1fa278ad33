// Three questions in the words of those who ask them: about bags of labels, an audit in one run, and repeated records.

import { at, fill, html } from "../dom.js";
import { DomainError, real, value, whole } from "../fields.js";
import { exactly } from "../numbers.js";
import { plot } from "../run/plot.js";
import { brief, high, low, percent, rateText } from "../run/words.js";
import { refuted } from "./audits.js";
import { accuracy, response } from "./labels.js";
import { repeated } from "./membership.js";

const starts = (field, start) => ({ ...field, start });

/** Whole numbers between two, at most about forty, by equal ratios or steps, with one more that is marked. */
function between(least, most, ratios, marked) {
  const count = Math.min(40, most - least);
  const each = Array.from({ length: count + 1 }, (_, k) => {
    const share = count ? k / count : 0;
    return Math.round(ratios ? least * (most / least) ** share : least + (most - least) * share);
  });
  return [...new Set([...each, marked])].sort((a, b) => a - b);
}

const share = ({ lower, upper }) => `${brief({ lower: 100 * lower, upper: 100 * upper })} %`;

const labels = {
  title: "What do bags of labels reveal?",
  fields: [starts(whole("bag", "labels in a bag", 1, 100000), "8"), starts(real("ones", "share of label 1", 1e-6, 1 - 1e-6), "0.5")],
  assumed: "The labels of a bag are independent, and the share of label 1 is all that is known of an example. If features say more about a label: privsweep labels --prior.",
  answer({ bag, ones }) {
    const right = accuracy(bag, ones);
    const epsilon = response(right, ones);
    const blind = Math.max(ones, 1 - ones);
    const same = epsilon.upper === Infinity
      ? "A bag of one label reveals it."
      : `Randomized response reveals as much with ε ${brief(epsilon)}.`;
    return {
      big: `${share(right)} of the labels are guessed right`,
      small: `by the best guess, on average; by a blind guess ${percent(blind, true)}`,
      says: [same],
    };
  },
  chart({ bag, ones }) {
    const points = between(1, Math.max(64, 2 * bag), true, bag).map((x) => ({ x, ...accuracy(x, ones) }));
    const flat = (epsilon) => {
      const right = Math.max(ones, 1 - ones, 1 / (1 + Math.exp(-epsilon)));
      return points.map(({ x }) => ({ x, lower: right, upper: right }));
    };
    return {
      name: "The share of labels that the best guess gets right, over the labels in a bag.",
      across: "labels in a bag",
      up: "labels guessed right",
      mark: bag,
      series: [
        { key: "first", label: "bags", points },
        { key: "second", label: "randomized response, ε = 1", points: flat(1) },
      ],
      read: (point) => `bags of ${exactly(point.x)}: ${share(point)}`,
    };
  },
  command: ({ bag, ones }) => `privsweep labels --bag-size ${exactly(bag)} --prior "point(${exactly(ones)})"`,
};

const auditing = {
  title: "What does my audit in one run prove?",
  fields: [
    starts(whole("canaries", "canaries", 1, 1e6), "1000"),
    starts(whole("guesses", "guesses", 1, 1e5), "100"),
    starts(whole("correct", "correct guesses", 0, 1e5), "90"),
    starts(real("delta", "delta of the claim", 0, 1 - 1e-9), "1e-5"),
    starts(real("confidence", "confidence", 0.5, 1 - 1e-12), "0.95"),
  ],
  assumed: "Each canary was put into the training set or left out by its own fair coin, and the numbers of canaries and guesses were fixed before the result was seen. Other designs, and scores instead of counts: privsweep audit.",
  check({ canaries, guesses, correct }) {
    const most = (field, of, bound, x) => {
      if (x > bound) throw new DomainError(field, `Expected at most as many ${of}, ${exactly(bound)}, got ${exactly(x)}.`);
    };
    most("guesses", "guesses as canaries", canaries, guesses);
    most("correct", "correct guesses as guesses", guesses, correct);
  },
  answer(audit) {
    const { guesses, confidence } = audit;
    const found = refuted(audit);
    const best = refuted({ ...audit, correct: guesses });
    const limit = best
      ? `If all ${exactly(guesses)} guesses had been right, it would refute ${low(best)}: an audit of this size can show no more by this bound.`
      : `An audit of this size refutes nothing by this bound, even if all ${exactly(guesses)} guesses are right.`;
    if (!found) return { big: "Nothing is refuted", small: "this number of correct guesses happens by chance", says: [limit] };
    return {
      big: `ε is more than ${low(found)}`,
      small: `with confidence ${exactly(confidence)}`,
      says: [`Every claim of a smaller ε at this delta is refuted; audits err so in at most ${rateText(1 - confidence)} of all runs. ${limit}`],
    };
  },
  chart(audit) {
    const { guesses, correct } = audit;
    const points = between(Math.ceil(guesses / 2), guesses, false, correct).map((x) => {
      const found = refuted({ ...audit, correct: x });
      return { x, lower: found, upper: found };
    });
    return {
      name: "The epsilon that is refuted, over the number of correct guesses.",
      across: "correct guesses",
      up: "refuted ε",
      mark: correct,
      series: [{ key: "first", label: "", points: points.filter(({ lower }) => lower > 0) }],
      read: ({ x, lower }) => `${exactly(x)} correct: ε is more than ${low(lower)}`,
    };
  },
  command: ({ canaries, guesses, correct, delta, confidence }) =>
    `privsweep audit --counts ${[canaries, guesses, correct].map(exactly).join(" ")} --design independent --delta ${exactly(delta)} --confidence ${exactly(confidence)}`,
};

const membership = {
  title: "How well can any membership attack do?",
  fields: [starts(whole("values", "possible records, equally likely", 1, 1e9), "1000"), starts(whole("records", "training records", 1, 1e7), "1000")],
  assumed: "Records are drawn independently, and the learner may be any, for example a list of all records. For other distributions, samples and private learners: privsweep membership.",
  answer({ values, records }) {
    const found = repeated(values, records);
    return {
      big: `Advantage at most ${high(found.upper)}`,
      small: "true minus false positive rate; the worst learner attains it",
      says: [`If half of the tested records were used in training, no attack on any learner is right for more than ${percent((1 + found.upper) / 2, true)} of them; guessing is right for 50 %.`],
    };
  },
  chart({ values, records }) {
    const most = Math.min(1e7, Math.max(records * 10, 10));
    const points = between(Math.max(1, Math.floor(records / 100)), most, true, records).map((x) => ({ x, ...repeated(values, x) }));
    return {
      name: "The largest advantage of any attack, over the number of training records.",
      across: "training records",
      up: "largest advantage",
      mark: records,
      series: [{ key: "first", label: "", points: points.filter(({ lower }) => lower > 0) }],
      read: ({ x, upper }) => `${exactly(x)} records: at most ${high(upper)}`,
    };
  },
  command: ({ values, records }) =>
    ["privsweep membership", "--law", `"uniform(${exactly(values)})"`, "--records", exactly(records)].join(" "),
};

/** The questions by tab. */
export const FACTS = { labels, auditing, membership };

/**
 * The numbers in the form.
 *
 * @throws DomainError
 */
function read({ fields, check }, texts) {
  const found = Object.fromEntries(fields.map((field) => [field.name, value(field, texts[field.name])]));
  check?.(found);
  return found;
}

function say(big, small, ...words) {
  fill("fact-number", big);
  fill("fact-kind", small);
  fill("fact-says", words.flat());
}

function answer(fact) {
  const texts = Object.fromEntries(fact.fields.map(({ name }) => [name, at(`fact-${name}`).value]));
  let [found, wrong] = [null, null];
  try {
    found = read(fact, texts);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    wrong = error;
  }
  for (const { name } of fact.fields) {
    if (name === wrong?.field) at(`fact-${name}`).setAttribute("aria-invalid", "true");
    else at(`fact-${name}`).removeAttribute("aria-invalid");
  }
  at("fact-more").hidden = wrong !== null;
  if (wrong) {
    say("", "", html("span", { class: "error" }, wrong.message));
    return texts;
  }
  const { big, small, says } = fact.answer(found);
  say(big, small, says);
  fill("fact-command", fact.command(found));
  const content = fact.chart(found);
  at("fact-chart").hidden = content.series[0].points.length < 2;
  if (!at("fact-chart").hidden) plot("fact-chart", content);
  document.title = `${big} · privsweep`;
  return texts;
}

/**
 * Show the question of a tab, or none.
 *
 * @param tab The name of the tab.
 * @param given The parameters of the address.
 */
export function showFact(tab, given) {
  const fact = FACTS[tab];
  at("fact").hidden = !fact;
  if (!fact) return;
  at("fact-title").textContent = fact.title;
  fill("fact-assumed", fact.assumed);
  fill(
    "fact-form",
    fact.fields.map(({ name, label, start }) => {
      const input = html("input", { id: `fact-${name}`, type: "text", inputmode: "decimal", maxlength: 20, autocomplete: "off" });
      input.value = given?.get(name) ?? start;
      input.addEventListener("input", () => {
        const texts = answer(fact);
        history.replaceState(null, "", `#${new URLSearchParams({ tab, ...texts })}`);
      });
      return html("p", {}, html("label", { for: `fact-${name}` }, label), " ", input);
    }),
  );
  answer(fact);
}
