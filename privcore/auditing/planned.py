"""Plans of an audit: the epsilon that it refutes at the expected count, and the best number of guesses."""

import math
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from privcore.answer import Answer
from privcore.auditing.ceiling import ceiling_cost, refutable
from privcore.auditing.counts import (
    AuditingApproximate,
    AuditingSteinke,
    epsilon_of,
    no_epsilon_of_family,
    refuted_mu,
)
from privcore.auditing.optimal import error_rates, expected_correct, mean_correct, mean_correct_of_halves
from privcore.auditing.problems import (
    AuditBestGuesses,
    AuditCeiling,
    AuditEpsilon,
    AuditPlannedEpsilon,
    AuditTraining,
    recursion_cost,
)
from privcore.auditing.programme import MOST_GUESSES
from privcore.auditing.tightest import AuditingTightest, counts_of, mu_cost, mu_without_programme, refuted_by
from privcore.method import Cost, Direction, Method
from privcore.papers import MAHLOUJIFAR, STEINKE


class AuditingPlanned(Method[AuditPlannedEpsilon]):
    """Audit the expected counts: the lower end is the result of the audit, the upper end limits all audits.

    The detail has the counts and, unless delta is 0, the epsilon that is refuted for the other family. The
    epsilon for the Gaussian family depends on a model; the epsilon for (epsilon, delta)-DP does not.
    """

    name = "auditing.planned"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Section 5, idealised setting, and Theorems 9 and 10"
    version = 4

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        audit = all_correct(problem)
        one, free, modelled = (
            ceiling_cost(_ceiling(audit, problem.family)),
            AuditingTightest().cost(audit),
            mu_cost(audit),
        )
        return Cost(
            seconds=one.seconds + free.seconds + modelled.seconds,
            bytes=one.bytes + free.bytes + modelled.bytes,
        )

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        audit = planned_audit(
            problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
        )
        lower, upper = refutable(_ceiling(audit, problem.family))
        detail = f"{audit.correct} of {audit.guesses} correct"
        if problem.family == "gaussian":
            detail += f"; without a model: {refuted_by(audit, 'approximate'):.6g}"
        elif problem.delta > 0.0:
            detail += f"; model-based, Gaussian noise: {refuted_by(audit, 'gaussian'):.6g}"
        return Answer.enclosure(lower, upper, value=lower, detail=detail)


def planned_audit(canaries: int, guesses: int, mu: float, delta: float, confidence: float) -> AuditEpsilon:
    """Return the audit with the expected number of correct guesses, rounded to the nearest whole number.

    Args:
        canaries: Number m of canaries.
        guesses: Number c' of guesses, those about the clearest scores.
        mu: Gaussian differential privacy of the mechanism, >= 0.
        delta: Delta of the refuted claim, in [0, 1).
        confidence: Confidence of the audit, in [1/2, 1).

    Reference:
        arXiv:2410.22235v1, Section 5, idealised setting.

    Example:
        >>> planned_audit(100_000, 1500, 1.0, 1e-5, 0.95).correct
        1429
    """
    correct = round(expected_correct(canaries, guesses, mu))
    return AuditEpsilon(
        canaries=canaries, guesses=guesses, correct=correct, delta=delta, audit_confidence=confidence
    )


def _ceiling(audit: AuditEpsilon, family: str) -> AuditCeiling:
    """Return the problem of the largest epsilon that audits of these counts can refute."""
    return AuditCeiling(
        **counts_of(audit), delta=audit.delta, audit_confidence=audit.audit_confidence, family=family
    )


class AuditingPlannedApproximate(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.approximate`: a lower bound of the largest epsilon.

    The audit is valid, but `auditing.planned` takes a better one, `auditing.tightest`. This method is for
    figures that show the audit of the paper as a separate curve.
    """

    name = "auditing.plannedapproximate"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Section 4, idealised setting, and Theorem 10"
    version = 2

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return without_a_model(problem)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return AuditingApproximate().cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        return refuted_as_planned(problem, AuditingApproximate())


def without_a_model(problem: AuditPlannedEpsilon) -> str | None:
    """Return the reason why an audit of (epsilon, delta)-DP does not apply to a problem, or None."""
    return None if problem.family == "approximate" else "The audit refutes (epsilon, delta)-DP only."


def all_correct(problem: AuditPlannedEpsilon) -> AuditEpsilon:
    """Return the audit in which every guess is correct, which is the most expensive, to estimate costs."""
    return audit_of(problem, problem.guesses)


def audit_of(problem: AuditPlannedEpsilon | AuditTraining, correct: int) -> AuditEpsilon:
    """Return the audit with the counts of a problem and this number of correct guesses."""
    return AuditEpsilon(
        canaries=problem.canaries,
        guesses=problem.guesses,
        correct=correct,
        delta=problem.delta,
        audit_confidence=problem.audit_confidence,
    )


def refuted_as_planned(problem: AuditPlannedEpsilon, audit: Method) -> Answer:
    """Return the epsilon refuted at the expected counts, a lower bound of the largest valid one."""
    counts = planned_audit(
        problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
    )
    refuted = audit.answer(counts, 0)
    return Answer.at_least(
        refuted.lower, detail=f"{counts.correct} of {counts.guesses} correct; {refuted.detail}"
    )


class AuditingPlannedSteinke(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.steinke`: a lower bound of the largest epsilon."""

    name = "auditing.plannedsteinke"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{STEINKE}, Theorem 5.2"

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        return without_a_model(problem)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return AuditingSteinke().cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        return refuted_as_planned(problem, AuditingSteinke())


class AuditingPlannedGaussian(Method[AuditPlannedEpsilon]):
    """Audit the expected counts by `auditing.gaussian`: a lower bound of the largest epsilon of the family.

    `auditing.planned` takes the linear programme, too. This method is for figures of the paper, as
    `auditing.plannedapproximate`.
    """

    name = "auditing.plannedgaussian"
    problems = (AuditPlannedEpsilon,)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Section 5, idealised setting, and Theorem 10"

    def applies(self, problem: AuditPlannedEpsilon) -> str | None:
        if problem.family != "gaussian":
            return "The audit is for the Gaussian family only."
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditPlannedEpsilon) -> Cost:
        return recursion_cost(all_correct(problem))

    def answer(self, problem: AuditPlannedEpsilon, seed: int) -> Answer:
        counts = planned_audit(
            problem.canaries, problem.guesses, problem.mu, problem.delta, problem.audit_confidence
        )
        return Answer.at_least(
            epsilon_of(refuted_mu(counts), counts.delta),
            detail=f"{counts.correct} of {counts.guesses} correct; Algorithm 3, Gaussian family",
        )


PER_DECADE = 8
"""Values of the number of guesses per decade that are tried first."""
_MOST_LISTED = 20_000
"""Largest number of canaries for which all candidates can be tried."""
_MOST_TRIED = 300
"""Largest number of candidates that are all tried; the best of more candidates is searched."""
_LAST = 4
"""Numbers of guesses for which the linear programmes of the Gaussian family are solved."""


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
