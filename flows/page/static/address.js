// The part of the address after #: the question, so that a link shows it again. Its content is always text.

/** The problem and the texts of the fields that an address holds. */
export function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const texts = Object.fromEntries(given);
  const { problem = null, tab = null } = texts;
  delete texts.problem;
  delete texts.tab;
  return { problem, tab, texts };
}

/** The address of a question: `#problem=allocation-epsilon&sigma=1`. */
export function write(problem, texts) {
  return `#${new URLSearchParams({ problem, ...texts })}`;
}
