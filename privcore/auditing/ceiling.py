"""Limits of every audit by counts: private mechanisms for which many guesses are correct."""

import math
from collections.abc import Callable
from typing import get_args

from privcore.answer import Answer
from privcore.auditing.counts import no_epsilon_of_family, refuted_mu
from privcore.auditing.exact import AuditingExact, exact_tail
from privcore.auditing.problems import MOST, AuditCeiling, AuditEpsilon, AuditTail, CountTail
from privcore.auditing.recursion import APPROXIMATE, GAUSSIAN, NO_LINES, Claim, inverse
from privcore.auditing.tightest import claim_of, counts_of, mu_cost, refuted_by
from privcore.method import Cost, Direction, Method
from privcore.numerics.binomial import window
from privcore.numerics.gaussian import gaussian_epsilon_bounds, last_true
from privcore.numerics.rounding import BINOMIAL_WINDOW, PRIVATE_RESPONSES
from privcore.papers import MAHLOUJIFAR

_LEAST = -700.0
"""Logarithm of the smallest probability pi that is tried."""
_SPACING = 0.02
_COARSE = range(-300, 601, 10)
"""Accuracies that are tried first: log odds around the observed ones, in units of `_SPACING` deviations."""


class Attaining:
    r"""With probability pi, publish responses of accuracy a about c' random canaries, otherwise coin flips.

    This mechanism is f-DP if $1 - f(\pi \gamma (1 - a)) \ge \pi \gamma a$ with $\gamma = c' / m$, and at
    least c guesses are correct with probability
    $\pi P[\mathrm{Bin}(c', a) \ge c] + (1 - \pi) P[\mathrm{Bin}(c', 1/2) \ge c]$. The accuracy a is chosen to
    maximise this probability.
    """

    def __init__(self, canaries: int, guesses: int, correct: int) -> None:
        """Choose the accuracies to try, around the observed share of correct guesses.

        Args:
            canaries: Number m of canaries.
            guesses: Number c' of guesses of inclusion.
            correct: Number c of correct guesses.
        """
        self.rate = guesses / canaries
        self.guesses, self.correct = guesses, correct
        right, wrong = correct + 0.5, guesses - correct + 0.5
        self.counted, self.deviation = math.log(right / wrong), math.sqrt((right + wrong) / (right * wrong))
        self.by_chance = self._tail(0.0)
        self.tails: dict[int, float] = {}

    def probability(self, claim: Claim) -> float:
        """Return the probability of at least c correct guesses, rounded down.

        An accuracy is a double, and its rounding changes the logarithm of a tail by at most c / a times as
        much.
        """
        if self.correct == 0:
            return 1.0
        always = _largest(lambda x: self._private(claim, x, 1.0), 0.0, 700.0)
        tried = {i: self._attained(claim, i, always) for i in _COARSE}
        near = max(tried, key=lambda i: tried[i])
        fine = max(self._attained(claim, i, always) for i in range(near - 9, near + 10))
        margin = 2.0 * BINOMIAL_WINDOW + 4e-16 * self.guesses
        return min(1.0, max(fine, self._tail(always)) * (1.0 - margin))

    def _attained(self, claim: Claim, place: int, always: float) -> float:
        """Return the probability at the accuracy with this index; 0 if it is not better than `always`."""
        log_odds = self.counted + place * _SPACING * self.deviation
        if log_odds <= always:
            return 0.0
        if place not in self.tails:
            self.tails[place] = self._tail(log_odds)
        share = self._share(claim, log_odds)
        return share * self.tails[place] + (1.0 - share) * self.by_chance

    def _share(self, claim: Claim, log_odds: float) -> float:
        """Return the largest probability pi with which responses of this accuracy may be published."""
        if not self._private(claim, log_odds, math.exp(_LEAST)):
            return 0.0
        return math.exp(_largest(lambda x: self._private(claim, log_odds, math.exp(x)), _LEAST, 0.0))

    def _tail(self, log_odds: float) -> float:
        """Return the probability of at least c correct responses."""
        return window(self.guesses, 1.0 / (1.0 + math.exp(-log_odds))).at_least(self.correct)

    def _private(self, claim: Claim, log_odds: float, share: float) -> bool:
        """Return whether responses of this accuracy may be published with this probability."""
        right = share * self.rate / (1.0 + math.exp(-log_odds))
        wrong = share * self.rate / (1.0 + math.exp(log_odds))
        return bool(inverse(claim, NO_LINES, min(1.0, right * (1.0 + PRIVATE_RESPONSES))) <= wrong)


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest number up to which the predicate holds, from below; it must hold at `low`."""
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class AuditingAttaining(Method[CountTail]):
    """Publish many correct responses, as often as the claimed privacy allows.

    The mechanism `Attaining` satisfies the claim, and no valid p-value is below its probability of this many
    correct guesses, which is the same for every design. This also limits every audit by counts: see
    `auditing.ceiling`.
    """

    name = "auditing.attaining"
    problems = get_args(CountTail)
    direction = Direction.LOWER
    reference = f"{MAHLOUJIFAR}, Lemma 11; the mechanism is ours"
    version = 2

    def applies(self, problem: CountTail) -> str | None:
        return (
            None
            if problem.alternatives == 2
            else "The mechanism is proved private for guesses of inclusion only (alternatives=2)."
        )

    def cost(self, problem: CountTail) -> Cost:
        root = problem.guesses**0.5 if self.applies(problem) is None else 0.0
        return Cost(seconds=0.02 + 1e-4 * root, bytes=2e6 + 4e4 * root)

    def answer(self, problem: CountTail, seed: int) -> Answer:
        claim = (
            (APPROXIMATE, problem.claimed_epsilon, problem.delta)
            if isinstance(problem, AuditTail)
            else (GAUSSIAN, problem.mu, 0.0)
        )
        attaining = Attaining(problem.canaries, problem.guesses, problem.correct)
        return Answer.enclosure(attaining.probability(claim), 1.0, detail="responses of the best accuracy")


_PRECISION = 1e-7
"""Relative precision of the search, far below the gap due to the finite choice of accuracies."""
_MOST_MU = 60.0
_LEAST_MU = 1e-6
"""Least mu in computations; the epsilon for a smaller mu is bounded by the epsilon for this mu."""


class AuditingCeiling(Method[AuditCeiling]):
    """Enclose the largest refutable epsilon by an audit and by a mechanism that attains the counts.

    The lower end is the best known audit: `auditing.tightest`, or `auditing.tightestmu` for the Gaussian
    family if it refutes more. The upper end is the least epsilon at which a private mechanism has this many
    correct guesses with probability above 1 - confidence: refuting this epsilon would be an error. Without a
    model the probability is exact, and the ends differ by roundings, unless the probability approaches
    1 - confidence without crossing it clearly.
    """

    name = "auditing.ceiling"
    problems = (AuditCeiling,)
    direction = Direction.ENCLOSURE
    reference = f"{MAHLOUJIFAR}, Theorems 9 and 10; the mechanisms of the upper end are ours"
    version = 4

    def applies(self, problem: AuditCeiling) -> str | None:
        if problem.family == "gaussian" and problem.alternatives != 2:
            return "The mechanism is for guesses of inclusion only (alternatives=2)."
        return no_epsilon_of_family(problem.family, problem.delta)

    def cost(self, problem: AuditCeiling) -> Cost:
        return ceiling_cost(problem)

    def answer(self, problem: AuditCeiling, seed: int) -> Answer:
        lower, upper = refutable(problem)
        return Answer.enclosure(
            lower, upper, detail=f"audit and attaining mechanism, {problem.family} family"
        )


def ceiling_cost(problem: AuditCeiling) -> Cost:
    """Return the cost of bounding the largest refutable epsilon from below and above."""
    if problem.family == "approximate":
        once = AuditingExact().cost(claim_of(_audit(problem), 1.0))
        return Cost(seconds=120.0 * once.seconds, bytes=once.bytes)
    audit, root = mu_cost(problem), problem.guesses**0.5
    return Cost(seconds=0.1 + 3e-4 * root + audit.seconds, bytes=2e6 + 4e4 * root + audit.bytes)


def refutable(problem: AuditCeiling) -> tuple[float, float]:
    """Return lower and upper bounds of the largest epsilon that a valid audit can refute.

    Args:
        problem: Counts, delta, confidence and family; for the Gaussian family, guesses of inclusion.

    Returns:
        Epsilon that an audit refutes, rounded down, and ceiling of all audits, rounded up; in nats.

    Example:
        >>> counts = {"canaries": 1000, "guesses": 1000, "correct": 691}
        >>> low, high = refutable(AuditCeiling(**counts, delta=1e-5, family="gaussian"))
        >>> round(low, 4), round(high, 4)
        (1.2967, 1.4524)
    """
    audit, tau = _audit(problem), 1.0 - problem.audit_confidence
    refuted = refuted_by(audit, problem.family)
    counts = problem.canaries, problem.guesses, problem.correct
    if problem.family == "approximate":

        def may_be_refuted(epsilon: float) -> bool:
            return exact_tail(*counts, epsilon, problem.delta, problem.alternatives)[0] <= tau

        return refuted, max(refuted, last_true(may_be_refuted, 0.0, MOST)[1])
    attaining, mu = Attaining(*counts), refuted_mu(audit)
    ceiling = _least(lambda x: attaining.probability((GAUSSIAN, x, 0.0)) > tau, mu, _MOST_MU)
    return refuted, max(refuted, _epsilon_above(ceiling, problem.delta))


def _audit(problem: AuditCeiling) -> AuditEpsilon:
    """Return the audit of these counts."""
    return AuditEpsilon(**counts_of(problem), delta=problem.delta, audit_confidence=problem.audit_confidence)


def _least(attained: Callable[[float], bool], start: float, most: float) -> float:
    """Return the least parameter at which the counts are attained, rounded up to the precision."""
    if attained(0.0):
        return 0.0
    low, high = start, min(most, 1.05 * start + 0.1)
    while not attained(high):
        if high >= most:
            return math.inf
        low, high = high, min(most, 2.0 * high)
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if attained(middle) else (middle, high)
    return high


def _epsilon_above(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism, rounded up."""
    if mu in (0.0, math.inf):
        return mu
    return gaussian_epsilon_bounds(1.0 / max(mu, _LEAST_MU), delta)[1]
