"""Best number of guesses: a few guesses are more often correct, many guesses are stronger evidence."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from privcore.answer import Answer
from privcore.auditing.approximate import no_epsilon_of_family
from privcore.auditing.mean_counts import mean_correct, mean_correct_of_halves
from privcore.auditing.optimal import error_rates
from privcore.auditing.planned import planned_audit
from privcore.auditing.planning_problems import AuditBestGuesses
from privcore.auditing.problems import AuditEpsilon
from privcore.auditing.programme import MOST_GUESSES
from privcore.auditing.tightest import AuditingTightest, mu_cost, mu_without_programme, refuted_by
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR

PER_DECADE = 8
"""Values of the number of guesses per decade that are tried first."""
_MOST_LISTED = 20_000
"""Largest number of canaries for which all candidates can be tried."""
_MOST_TRIED = 300
"""Largest number of candidates that are all tried; the best of more candidates is searched."""
_LAST = 4
"""Numbers of guesses for which the linear programmes of the Gaussian family are solved."""


@dataclass(frozen=True, kw_only=True)
class AuditingBest(Method[AuditBestGuesses]):
    """Try the largest number of guesses for each number of errors.

    The refuted epsilon is not smooth in the number of guesses, since the number of correct guesses is a whole
    number: at the same number of errors, more correct guesses refute more. If there are more than 300
    candidates, or 20,000 canaries, eight in a decade are tried first, and then at most 300 around the best of
    them. So the best number is an estimate, while the detail has the epsilon that an audit with this number
    refutes. The number must be fixed before the scores are known. The linear programmes of the Gaussian
    family take seconds for each number, so they are solved for the four numbers that are best by the other
    bounds.
    """

    name = "auditing.best"
    problems = (AuditBestGuesses,)
    direction = Direction.ESTIMATE
    reference = f"{MAHLOUJIFAR}, Section 5 and Figure 1"
    version = 5

    def applies(self, problem: AuditBestGuesses) -> str | None:
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditBestGuesses) -> Cost:
        # Counts that are almost refutable take many steps, or many terms: about the root of their number.
        root = problem.canaries**0.5
        audit = planned_audit(problem.canaries, problem.canaries, problem.mu, 0.5, 0.5)
        if problem.family == "gaussian":
            few = planned_audit(problem.canaries, min(problem.canaries, MOST_GUESSES), problem.mu, 0.5, 0.5)
            last = mu_cost(few)
            return Cost(seconds=5.0 + 4e-3 * root + _LAST * last.seconds, bytes=2e6 + last.bytes)
        return Cost(seconds=4.0 + 4e-3 * root, bytes=AuditingTightest().cost(audit).bytes)

    def answer(self, problem: AuditBestGuesses, seed: int) -> Answer:
        epsilon, guesses = best_guesses(problem, _candidates(problem))
        if epsilon == 0.0:
            return Answer.about(0.0, detail="none of the numbers of guesses tried refutes an epsilon")
        rule = "half in and half out" if problem.guessing == "halves" else "about the clearest scores"
        correct = with_mean_counts(problem, guesses).correct
        detail = f"refutes epsilon {epsilon:.6g} with {correct} correct, the rounded mean of guesses {rule}"
        return Answer.about(float(guesses), detail=f"{detail}, {problem.family} family")


def _candidates(problem: AuditBestGuesses) -> list[int]:
    """Return the numbers of guesses to try: all candidates, or a selection if there are many."""
    m, step = problem.canaries, _step(problem)
    last = step * (m // step)
    if last == 0 or (m <= _MOST_LISTED and errors_of(problem, last) < _MOST_TRIED):
        return largest_for_errors(problem, step, last)
    first = best_guesses(problem, first_tried(m))[1]
    ratio = 10.0 ** (2.0 / PER_DECADE)
    low, high = max(2, _even(first / ratio)), min(last, _even(first * ratio))
    if high - low <= 2 * _MOST_LISTED:
        return [first, *largest_for_errors(problem, low, high)]
    return [first, *(_even(x) for x in np.geomspace(low, high, _MOST_TRIED).tolist())]


def largest_for_errors(problem: AuditBestGuesses, low: int, high: int) -> list[int]:
    """Return the largest number of guesses for each number of errors, which is the rounded mean.

    The mean number of errors rises with the number of guesses. Its limit for many canaries, the same for both
    rules of guessing, is where the search for each number of errors begins.

    Args:
        problem: The question.
        low: Least number of guesses, >= 1; even for half in and half out.
        high: Largest number of guesses, at most the number of canaries; likewise even.

    Returns:
        Rising numbers; if there are many numbers of errors, those for every second, third, ... of them.

    Example:
        >>> largest_for_errors(AuditBestGuesses(canaries=20, mu=1.0, delta=1e-5), 1, 20)
        [3, 7, 11, 13, 16, 18, 20]
    """
    guesses = range(low, high + 1, _step(problem))
    if not guesses:
        return []
    errors = cache(lambda place: errors_of(problem, guesses[place]))
    every = np.array(guesses, dtype=float)
    near = np.maximum.accumulate(every * error_rates(problem.mu, every / problem.canaries))
    counts = range(errors(0), errors(len(guesses) - 1) + 1)
    places = {
        _last(errors, count, len(guesses), int(np.searchsorted(near, count + 0.5)))
        for count in counts[:: max(1, len(counts) // _MOST_TRIED)]
    }
    return [guesses[place] for place in sorted(places)]


def _last(errors: Callable[[int], int], count: int, length: int, near: int) -> int:
    """Return the last place with at most this number of errors, looking in growing steps from one near it."""
    low = high = min(near, length - 1)
    step = 1
    while low > 0 and errors(low) > count:
        low, high, step = max(0, low - step), low, 2 * step
    while high < length and errors(high) <= count:
        low, high, step = high, min(length, high + step), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if errors(middle) <= count else (low, middle)
    return low


def first_tried(canaries: int) -> list[int]:
    """Return the even numbers of guesses that are tried first, up to the number of all canaries.

    Example:
        >>> first_tried(50)
        [2, 4, 6, 8, 10, 14, 18, 24, 32, 42, 50]
    """
    last = PER_DECADE * math.ceil(math.log10(canaries) + 1.0)
    tried = {_even(10.0 ** (j / PER_DECADE)) for j in range(last)} | {2 * (canaries // 2)}
    return sorted(n for n in tried if 2 <= n <= canaries)


def best_guesses(problem: AuditBestGuesses, tried: Iterable[int]) -> tuple[float, int]:
    """Return the largest epsilon that is refuted with one of these numbers of guesses, and the number."""
    audits = {n: with_mean_counts(problem, n) for n in sorted(set(tried))}
    if problem.family == "gaussian":
        quickly = {n: mu_without_programme(audit) for n, audit in audits.items()}
        audits = {n: audits[n] for n in sorted(audits, key=quickly.__getitem__)[-_LAST:]}
    return max(((refuted_by(audit, problem.family), n) for n, audit in audits.items()), default=(0.0, 0))


def with_mean_counts(problem: AuditBestGuesses, guesses: int) -> AuditEpsilon:
    """Return the audit with this number of guesses and the mean number of correct ones, rounded."""
    return AuditEpsilon(
        canaries=problem.canaries,
        guesses=guesses,
        correct=guesses - errors_of(problem, guesses),
        delta=problem.delta,
        audit_confidence=problem.audit_confidence,
    )


def errors_of(problem: AuditBestGuesses, guesses: int) -> int:
    """Return the planned number of errors: the guesses without the rounded mean of correct ones."""
    mean = mean_correct_of_halves if problem.guessing == "halves" else mean_correct
    return guesses - round(mean(problem.canaries, guesses, problem.mu))


def _step(problem: AuditBestGuesses) -> int:
    """Return the difference of neighbouring numbers of guesses; half in and half out are an even number."""
    return 2 if problem.guessing == "halves" else 1


def _even(x: float) -> int:
    return max(2, 2 * round(0.5 * x))
