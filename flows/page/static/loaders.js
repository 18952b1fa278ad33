// The first question about a training run: how its code loads examples. No sampler is assumed.

import { fill, html } from "./dom.js";

/**
 * Show a button for every loader, and one for a reader who does not know.
 *
 * @param loaders A list of `{sampling, code, problem}`.
 * @param chosen Called with the problem of a loader, or with null.
 */
export function drawLoaders(loaders, chosen) {
  const choice = (text, help, problem) => {
    const button = html("button", { type: "button" }, text);
    button.addEventListener("click", () => chosen(problem));
    return html("li", {}, button, " ", html("span", { class: "help" }, help));
  };
  fill(
    "loaders",
    loaders.map(({ sampling, code, problem }) => choice(code, sampling.replaceAll("-", " "), problem)),
    choice("I do not know", "the answers for several samplers", null),
  );
}

/** The meaning of the comparison for a reader who does not know the loader. */
export const UNKNOWN =
  "Epsilon of one training run whose sampler is unknown: report the largest upper end of the table. " +
  "privsweep epsilon --sampling unknown covers more samplers.";
