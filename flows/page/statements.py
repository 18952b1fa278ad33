"""Sentences of a privacy statement, which the page completes with the numbers of an answer."""

from flows.answers.parse import SAMPLING
from flows.answers.question import relation_of
from flows.answers.training.statement import (
    ASSUMED_SENTENCE,
    AUTHOR_SENTENCE,
    EXCLUDED_SENTENCE,
    unit_sentence,
)
from privcore import Problem
from privcore.parameter import Choice

SENTENCES = {"assumed": ASSUMED_SENTENCE, "not_covered": EXCLUDED_SENTENCE, "author": AUTHOR_SENTENCE}
"""Sentences that are the same for every training run."""


def neighbours_of(kind: type[Problem]) -> dict[str, str] | None:
    """Return the unit of privacy in words for each neighbouring relation; None without a statement.

    Example:
        >>> from privcore import find_problem
        >>> neighbours_of(find_problem("poisson-epsilon"))["add"]  # doctest: +ELLIPSIS
        '...the second has one example more than the first (add-remove, in the direction add).'
        >>> neighbours_of(find_problem("label-advantage"))
    """
    if kind.name not in SAMPLING.values():
        return None
    words = kind.parameters["adjacency"]
    assert isinstance(words, Choice)
    return {word: unit_sentence("one example", relation_of(kind, word)) for word in words.choices}
