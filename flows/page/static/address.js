// The part of the address after #: the question, so that a link shows it again. Its content is always text.

/** The problem, the tab, the sampler and the texts of the fields that an address holds. */
export function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const texts = Object.fromEntries(given);
  const { problem = null, tab = null, sampling = null } = texts;
  delete texts.problem;
  delete texts.tab;
  delete texts.sampling;
  return { problem, tab, sampling, texts };
}

/** The address of a question, `#problem=allocation-epsilon&sigma=1`, or `#sampling=unknown&sigma=1`. */
export function write(problem, texts, unknown) {
  return `#${new URLSearchParams({ ...(unknown ? { sampling: "unknown" } : { problem }), ...texts })}`;
}
