"""Questions about a ratio, and the refinement of distributions until the bracket has the requested width."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import MOST_CELLS
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.method import Cost
from privcore.numerics.gaussian import gaussian_bounds, gaussian_rate_bounds
from privcore.numerics.rounding import FEW_FUNCTIONS, FEW_OPERATIONS, NOISE_BRACKET
from privcore.params import WIDTH
from privcore.problem import Problem

SMALLEST_DELTA = 1e-100
"""Smallest delta for which the products of two tail masses are in the range of doubles."""
SHARE = 1e-4
"""Share of delta that may be cut off in total."""
SMALLEST_SHARE = 1e-30
ATTEMPTS = 24
FIRST_DELTA = 1e-5
"""Start of the search for the order of magnitude of an unknown delta."""
FURTHER_DELTAS = (1e-25, SMALLEST_DELTA)
"""Next values of this search, if a lower distribution gives no bound at the first."""
SCOUT = 1.0 / 5.0
"""Width of cells in this search, in local standard deviations."""
FINEST = 1.0 / 1000.0
BEST_OF = {"epsilon": "epsilon of the best run", "delta": "delta of the best run"}
"""Quantities of the best of several runs, by those of one run."""
LOGARITHMIC = ("epsilon", "mu", BEST_OF["epsilon"])
"""Quantities that change like the logarithm of a probability; all others are probabilities."""
WIDER = 0.01
"""Relative width of brackets that would take much longer at the default width of epsilon."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Quantity to compute: epsilon at a delta, or delta at an epsilon, for one adjacency.

    Subclasses ask for other quantities, named by `asks`. If `falls` is true, the quantity falls as the
    privacy loss grows, and the upper distribution proves its lower end. An adjacency with two directions asks
    for the worse direction.
    """

    falls = False
    alone = "closed form"
    """Note on the quantity of a Gaussian mechanism."""

    asks: str
    at: float
    adjacency: str

    @property
    def scale(self) -> float | None:
        """The probability that sets the extent of the tails; None if it is the answer."""
        return self.at if self.asks == "epsilon" else None

    @property
    def is_epsilon(self) -> bool:
        """Whether an epsilon is asked for."""
        return self.asks == "epsilon"

    @property
    def runs(self) -> float:
        """Mean number of runs, if one is released."""
        return 1.0

    @property
    def guess(self) -> float:
        """The scale of the question if it is known, otherwise a small probability."""
        return 1e-20 if self.scale is None else self.scale

    @property
    def trivial(self) -> float:
        """The quantity for two equal distributions, which is the end without any privacy loss."""
        return 0.0 if self.asks == "epsilon" else math.nextafter(-math.expm1(min(0.0, self.at)), 0.0)

    def gaussian(self, mu: float) -> tuple[float, float]:
        """Return both ends of the quantity for N(mu, 1) against N(0, 1); mu may err by two roundings."""
        return gaussian_bounds(self.asks, 1.0 / mu, self.at)

    def ends(self, bracket: RatioBracket) -> tuple[float, float]:
        """Return the lower and the upper bound from a bracket."""
        processed, dominating = self.lower(bracket.lower), self.upper(bracket.upper)
        return (dominating, processed) if self.falls else (processed, dominating)

    def upper(self, distribution: RatioDistribution) -> float:
        """Return the bound from an upper distribution: the upper bound, unless the quantity falls."""
        read = profile.epsilon_upper if self.asks == "epsilon" else profile.delta_upper
        return read(distribution, self.at, self.adjacency)

    def lower(self, distribution: RatioDistribution) -> float:
        """Return the bound from a lower distribution: the lower bound, unless the quantity falls."""
        read = profile.epsilon_lower if self.asks == "epsilon" else profile.delta_lower
        return read(distribution, self.at, self.adjacency)


def enclose(
    build: Callable[[Resolution], RatioBracket],
    question: Question,
    tolerance: float,
    copies: float,
    outer: tuple[float, float],
    combinations: int,
    ease: float = 1.0,
    tight: bool = True,
) -> tuple[float, float, str]:
    """Return a bracket of the quantity in question, and a note about its computation.

    Args:
        build: Function that returns the bracket at a resolution, with both distributions in the same cells;
            it may raise `LikelihoodRangeError`. The lower distribution decides whether a finer resolution
            would help.
        question: Quantity to compute.
        tolerance: Requested relative width; refinement stops at this width, or after `ATTEMPTS` resolutions.
        copies: Largest number of times that a cut-off tail enters the result.
        outer: A known bracket; the result lies within it.
        combinations: Number of combinations of two distributions in a build, which sets the first resolution.
        ease: Factor on the initial width of a cell, if the default width is known to be too small.
        tight: Whether the lower distribution bounds the quantity: False if the upper distribution is derived
            from a reduction that is not tight. Only quantities that grow can be asked then.

    Returns:
        Lower end, upper end, detail.
    """
    lower, upper = outer
    delta = min(upper, FIRST_DELTA) if question.scale is None else question.scale
    if delta < SMALLEST_DELTA:
        return lower, upper, f"closed-form bounds; delta below {SMALLEST_DELTA:g}"
    scouting = question.scale is None  # a coarse search finds the extent of the tails
    finest = ease * first_fineness(question.asks, tolerance, combinations)
    fineness = SCOUT if scouting else finest
    detail = "closed-form bounds"
    last_gap: float | None = None
    share = SHARE
    for _ in range(ATTEMPTS):
        if upper <= lower * (1.0 + tolerance):
            break
        tail = tier(share * delta) * tier(1.0 / copies)
        try:
            bracket = build(Resolution(fineness=fineness, tail=tail))
        except LikelihoodRangeError as error:
            return lower, upper, f"closed-form bounds; {error}"
        new_lower, new_upper = question.ends(bracket)
        lower, upper = max(lower, new_lower) if tight else lower, min(upper, new_upper)
        detail = f"{bracket.upper.x.size} cells of 1/{1.0 / fineness:.0f} standard deviation, tail {tail:.0e}"
        if scouting:
            scouting = 0.5 * delta > new_lower and delta > SMALLEST_DELTA
            delta = max(min(new_lower if new_lower > 0.0 else 1e-10 * delta, delta), SMALLEST_DELTA)
            fineness = SCOUT if scouting else finest
            continue
        if max(bracket.upper.drift_remove, bracket.upper.drift_add) > 0.01 * delta and share > SMALLEST_SHARE:
            share *= 1e-10  # rounding in the cells at the ends is visible: reduce their mass
            continue
        gap = new_upper / new_lower - 1.0 if new_lower > 0.0 else math.inf
        rounding = bracket.upper.value_error + bracket.lower.value_error
        if question.asks not in LOGARITHMIC:
            rounding = new_lower * (bracket.upper.mass_error + bracket.lower.mass_error)
        stuck = last_gap is not None and not gap < 0.9 * last_gap
        if math.isinf(new_upper) and fineness > FINEST:
            stuck = False  # a few cells may miss a rare and large ratio
        if (
            stuck
            or gap <= enough(question.asks, tolerance, new_lower)
            or new_upper - new_lower < 3.0 * rounding
        ):
            break  # the width suffices, or is due to rounding
        if new_lower <= 0.0 and delta <= SMALLEST_DELTA:
            break
        last_gap = gap
        narrower = math.sqrt(0.7 * enough(question.asks, tolerance, new_lower) / gap)
        fineness = max(fineness * max(0.3, min(0.8, narrower)), FINEST)
    if tight and lower * (1.0 + tolerance) < upper:
        detail += f"; wider than the tolerance of {tolerance:g}"
    return lower, upper, detail


def from_below(
    build: Callable[[Resolution], RatioDistribution], question: Question, fineness: float, copies: float
) -> tuple[float, str]:
    """Return a lower bound of the quantity in question from a lower distribution alone, and a note.

    No upper distribution shows whether a finer resolution would help, so the resolution is given.

    Args:
        build: Function that returns the lower distribution at a resolution; it may raise
            `LikelihoodRangeError`.
        question: Quantity to compute.
        fineness: Width of a cell in local standard deviations.
        copies: Largest number of times that a cut-off tail enters the result.

    Returns:
        Lower bound, 0 if the distribution is out of range; detail.
    """
    scouting = question.asks == "delta"
    delta = FIRST_DELTA if scouting else question.at
    best, detail, share, further = 0.0, f"delta below {SMALLEST_DELTA:g}", SHARE, list(FURTHER_DELTAS)
    for _ in range(ATTEMPTS if delta >= SMALLEST_DELTA else 0):
        tail = tier(share * delta) * tier(1.0 / copies)
        used = SCOUT if scouting else fineness
        try:
            law = build(Resolution(fineness=used, tail=tail))
        except LikelihoodRangeError as error:
            return best, str(error)
        found = question.lower(law)
        best = max(best, found)
        detail = f"{law.x.size} cells of 1/{1.0 / used:.0f} standard deviation, tail {tail:.0e}"
        if scouting:
            scouting = 0.5 * delta > found
            if found <= 0.0 and not further:
                return 0.0, detail
            delta = max(min(found if found > 0.0 else further.pop(0), delta), SMALLEST_DELTA)
            continue
        if max(law.drift_remove, law.drift_add) <= 0.01 * delta or share <= SMALLEST_SHARE:
            break
        share *= 1e-10  # rounding in the cells at the ends is visible: reduce their mass
    return best, detail


def requested(asks: str, tolerance: float, *, quick: bool = True) -> float:
    """Return the relative width of a bracket that the tolerance of a method requests.

    A probability is several times as sensitive as epsilon, so the same width takes many times as long. There,
    tolerances from the default of an epsilon up to `WIDER` request `WIDER`.

    Args:
        asks: The quantity.
        tolerance: Tolerance of the method.
        quick: Whether the distributions are quick to compute; those of k of t steps are not.

    Example:
        >>> [requested("delta", tolerance) for tolerance in (5e-4, 1e-3, 0.05)]
        [0.0005, 0.01, 0.05]
    """
    if (quick and asks in LOGARITHMIC) or not WIDTH <= tolerance < WIDER:
        return tolerance
    return WIDER


def enough(asks: str, tolerance: float, value: float) -> float:
    """Return the relative width at which to stop.

    A probability far below 1e-11 changes by many times the relative change of its epsilon; the same work
    gives a width in proportion to its logarithm.
    """
    return tolerance if asks in LOGARITHMIC or value <= 0.0 else tolerance * max(1.0, -math.log(value) / 25.0)


def first_fineness(asks: str, tolerance: float, combinations: int) -> float:
    """Return the width of a cell, in local standard deviations, that should give the requested tolerance.

    Every combination adds a relative variance of about a quarter of the squared width, which changes epsilon
    by half of it; a probability is several times more sensitive.
    """
    width = min(1.0 / 6.0, math.sqrt(6.0 * tolerance / (combinations + 2)))
    return width if asks in LOGARITHMIC else 0.3 * width


def cost(question: Question, s: float, tolerance: float, combinations: int) -> Cost:
    """Return a conservative estimate of the cost of one bracket; it is measured in tests/privcore.

    Args:
        question: Quantity to compute; a small delta needs long tails.
        s: Inverse noise multiplier, which determines the width of a distribution in local standard
            deviations.
        tolerance: Requested relative width.
        combinations: Number of combinations of two distributions at one resolution.
    """
    wide = (20.0 + 1.5 * s * s) * max(1.0, math.sqrt(-math.log10(question.guess) / 10.0))
    cells = min(wide / first_fineness(question.asks, tolerance, combinations), MOST_CELLS)
    looks = 6.0 if question.asks == "delta" else 1.0
    seconds = 0.01 + looks * (combinations + 1) * (8e-4 + 1.2e-8 * cells * cells)
    return Cost(seconds=seconds, bytes=2e7 + 1e3 * cells)


def powering(times: int) -> int:
    """Return the number of combinations in binary powering."""
    return times.bit_length() + times.bit_count() - 2


def tier(x: float) -> float:
    """Return x > 0 rounded down to a power of 10^5, so that neighbouring questions share distributions."""
    return 10.0 ** (5 * math.floor(math.log10(x) / 5.0 + 1e-9))


@dataclass(frozen=True, kw_only=True)
class PowerQuestion(Question):
    """Largest true positive rate at a false positive rate; of both orders, if both directions are asked."""

    asks: str = "true_positive_rate"

    @property
    def scale(self) -> float:
        """The false positive rate."""
        return self.at

    @property
    def trivial(self) -> float:
        return self.at

    def gaussian(self, mu: float) -> tuple[float, float]:
        return gaussian_rate_bounds(self.at, mu)

    def upper(self, distribution: RatioDistribution) -> float:
        return float(profile.powers_upper(distribution, np.array([self.at]), self.adjacency)[0])

    def lower(self, distribution: RatioDistribution) -> float:
        return float(profile.powers_lower(distribution, np.array([self.at]), self.adjacency)[0])


@dataclass(frozen=True, kw_only=True)
class RateQuestion(Question):
    """Smallest false positive rate at a true positive rate; of both orders, if both directions are asked."""

    falls = True

    asks: str = "false_positive_rate"

    @property
    def scale(self) -> float:
        """The true positive rate."""
        return self.at

    @property
    def trivial(self) -> float:
        return self.at

    def gaussian(self, mu: float) -> tuple[float, float]:
        return gaussian_rate_bounds(self.at, -mu)

    def upper(self, distribution: RatioDistribution) -> float:
        return float(profile.rates_lower(distribution, np.array([self.at]), self.adjacency)[0])

    def lower(self, distribution: RatioDistribution) -> float:
        return float(profile.rates_upper(distribution, np.array([self.at]), self.adjacency)[0])


@dataclass(frozen=True, kw_only=True)
class MuQuestion(Question):
    """Largest mu of the Gaussian curves through the points of the trade-off curve, from a smallest rate on.

    It is the smallest mu such that the curve of the Gaussian mechanism is above the trade-off curve at all
    false positive rates from `at` to 1 - `at`.
    """

    asks: str = "mu"

    @property
    def scale(self) -> float:
        """A fraction of the smallest false positive rate; a small mu changes the rates only a little."""
        return 1e-3 * self.at

    @property
    def trivial(self) -> float:
        return 0.0

    def gaussian(self, mu: float) -> tuple[float, float]:
        return mu * (1.0 - NOISE_BRACKET), mu * (1.0 + NOISE_BRACKET)

    def upper(self, distribution: RatioDistribution) -> float:
        return profile.mu_upper(distribution, self.at, self.adjacency)

    def lower(self, distribution: RatioDistribution) -> float:
        return profile.mu_lower(distribution, self.at, self.adjacency)


@dataclass(frozen=True, kw_only=True)
class AdvantageQuestion(Question):
    """Largest difference of the true and the false positive rate, which is the same in both orders."""

    asks: str = "advantage"
    at: float = 0.0
    adjacency: str = "add-remove"

    def upper(self, distribution: RatioDistribution) -> float:
        return min(delta_upper(distribution, 0.0, direction) for direction in ("remove", "add"))

    def lower(self, distribution: RatioDistribution) -> float:
        return delta_lower(distribution, 0.0, "add-remove")


@dataclass(frozen=True, kw_only=True)
class AccuracyQuestion(Question):
    """Delta that gives the accuracy at a prior; a delta below the scale hardly changes the accuracy."""

    asks: str = "delta"

    @property
    def scale(self) -> float:
        return 1e-9


def accuracy_question(prior: float) -> Question:
    r"""Translate a prior into the delta that gives the Bayes accuracy; see `accuracy_bounds`.

    Example:
        >>> question = accuracy_question(0.25)
        >>> question.adjacency, round(question.at, 6)
        ('remove', 1.098612)
    """
    odds = math.log1p(-prior) - math.log(prior)
    return AccuracyQuestion(at=abs(odds), adjacency="remove" if prior < 0.5 else "add")


_KINDS = {"true_positive_rate": PowerQuestion, "false_positive_rate": RateQuestion, "mu": MuQuestion}
"""Kinds of questions about quantities other than epsilon, delta, the advantage and the accuracy."""


def question_of(problem: Problem) -> Question:
    """Return the quantity of a problem about a privacy curve."""
    if problem.asks == "advantage":
        return AdvantageQuestion()
    if problem.asks == "accuracy":
        return accuracy_question(problem.at)
    kind = _KINDS.get(problem.asks, Question)
    return kind(asks=problem.asks, at=problem.at, adjacency=str(problem.as_fields()["adjacency"]))


def accuracy_bounds(prior: float, lower: float, upper: float) -> tuple[float, float]:
    r"""Return the ends of the largest accuracy of a guess whether the example is in the data set.

    With the prior $\pi < 1/2$ of membership it is $1 - \pi + \pi H_{(1-\pi)/\pi}(P \| Q)$, and for a larger
    prior $\pi + (1 - \pi) H_{\pi/(1-\pi)}(Q \| P)$: the accuracy of the better constant guess, and the gain.
    An error of the logarithm of the odds changes the delta by at most as much.

    Args:
        prior: Probability that the example is in the data set, in (0, 1).
        lower: Lower end of the answer to `accuracy_question`.
        upper: Upper end of this answer.

    Example:
        >>> accuracy_bounds(0.5, 0.2, 0.2)
        (0.5999..., 0.6000...)
    """
    best, gain = max(prior, 1.0 - prior), min(prior, 1.0 - prior)
    least = (best + gain * lower) * (1.0 - FEW_FUNCTIONS)
    most = (best + gain * upper) * (1.0 + FEW_FUNCTIONS)
    return max(least, best * (1.0 - FEW_OPERATIONS)), min(most, 1.0)


def precision_bounds(prior: float, rate: float, lower: float, upper: float) -> tuple[float, float]:
    r"""Return the ends of the largest precision of an attack with a given false positive rate.

    Precision is the share of members among the examples that the attack calls members,
    $\pi T / (\pi T + (1 - \pi) a)$ for the prior $\pi$, the true positive rate T and the false positive rate
    a.

    Args:
        prior: Probability that the example is in the data set, in (0, 1).
        rate: False positive rate, > 0.
        lower: Lower end of the true positive rate, with the null hypothesis that the example is absent.
        upper: Upper end of this rate.

    Example:
        >>> precision_bounds(0.5, 0.1, 0.3, 0.3)
        (0.7499..., 0.7500...)
    """
    ends = [prior * power / (prior * power + (1.0 - prior) * rate) for power in (lower, upper)]
    return ends[0] * (1.0 - FEW_OPERATIONS), min(1.0, ends[1] * (1.0 + FEW_OPERATIONS))
