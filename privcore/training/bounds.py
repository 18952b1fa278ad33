"""Ratios that bound a training run from above and from below, and the bracket that follows from them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product as combinations_of
from typing import Any

from privcore.likelihood_ratio.enclose import Question, cost
from privcore.likelihood_ratio.ratios import Gaussian, Ratio, enclosed, product, repeated
from privcore.method import Cost
from privcore.numerics.rounding import FEW_OPERATIONS, NOISE_BRACKET, probability_at_most

MOST_COMBINATIONS = 4
"""Largest number of products of the ratios of different phases that are tried for one end."""
MANY = 16
"""Number of phases from which only the first ratios of all phases are multiplied."""
Ends = tuple[float, float]
LARGEST_LOSS = 600.0
"""Largest epsilon at which a bound moved by a total variation distance is used."""


@dataclass(frozen=True)
class Above:
    """A ratio that dominates every pair within a total variation distance.

    Attributes:
        ratio: The ratio.
        moved: Each of P and Q lies within this total variation distance of a pair that the ratio dominates.
        meant: Epsilon for which this approximation was chosen, if it depends on epsilon; it is not tried
            where another bound is below half of it.
    """

    ratio: Ratio
    moved: float = 0.0
    meant: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """Ratios that bound a part of a run.

    Attributes:
        above: Each dominates the part; the best one counts.
        below: Each is the ratio of a data set, or of a post-processing of its outputs.
    """

    above: tuple[Above, ...]
    below: tuple[Ratio, ...]

    @classmethod
    def exact(cls, ratio: Ratio) -> "Bounds":
        """Return the bounds of a part with a worst pair for all thresholds."""
        return cls(above=(Above(ratio),), below=(ratio,))

    def repeated(self, times: int) -> "Bounds":
        """Return the bounds of independent repetitions."""
        above = (
            replace(each, ratio=repeated(each.ratio, times), moved=min(1.0, times * each.moved))
            for each in self.above
        )
        return Bounds(tuple(above), tuple(repeated(ratio, times) for ratio in self.below))

    @property
    def tight(self) -> bool:
        """Whether one ratio is both the worst pair and the ratio of a data set."""
        return len(self.above) == 1 and self.above[0].moved == 0.0 and self.below == (self.above[0].ratio,)


def composed(parts: Sequence[Bounds]) -> Bounds:
    """Return the bounds of independent parts; the ratios of all parts are multiplied.

    If parts have several ratios, the first products are formed of the first ratios, then of the second ones,
    and so on, and then of all others, up to `MOST_COMBINATIONS`.
    """
    if len(parts) == 1:
        return parts[0]
    above = [
        Above(
            product(tuple(each.ratio for each in one)),
            moved=sum(each.moved for each in one),
            meant=max(each.meant for each in one),
        )
        for one in _chosen([part.above for part in parts])
    ]
    below = [product(one) for one in _chosen([part.below for part in parts])]
    return Bounds(above=tuple(dict.fromkeys(above)), below=tuple(dict.fromkeys(below)))


def _chosen(options: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return products of the options: of the k-th ones for every k, then of others."""
    if len(options) > MANY:
        return [tuple(each[0] for each in options)]
    most = max(len(each) for each in options)
    chosen = [tuple(each[min(k, len(each) - 1)] for each in options) for k in range(most)]
    for other in combinations_of(*options):
        if len(chosen) >= MOST_COMBINATIONS:
            break
        if other not in chosen:
            chosen.append(other)
    return chosen[: max(MOST_COMBINATIONS, most)]


def enclosed_run(
    bounds: Bounds, question: Question, tolerance: float, unamplified: float
) -> tuple[float, float, str]:
    """Return a bracket of a quantity of a run, and a note.

    Args:
        bounds: Ratios of the run.
        question: Quantity to compute, in the directions of its adjacency.
        tolerance: Requested relative width.
        unamplified: Distance mu of the Gaussian mechanism that reveals the steps of the example; it bounds
            the run from above.
    """
    if bounds.tight:
        ratio = bounds.above[0].ratio
        if isinstance(ratio, Gaussian):
            return *closed_form(question, ratio.mu), "closed form"
        return enclosed(ratio, question, tolerance, outermost(question, unamplified))
    if question.falls:
        return _falling(bounds, question, tolerance, unamplified)
    lower, most = outermost(question, unamplified)
    upper, notes = dominated_run(bounds.above, question, tolerance, (lower, most))
    for ratio in bounds.below:
        lower = max(lower, enclosed(ratio, question, tolerance, (lower, upper))[0])
    return lower, upper, f"upper end: {notes}"


def dominated_run(
    above: Sequence[Above], question: Question, tolerance: float, outer: Ends
) -> tuple[float, str]:
    """Return the best upper bound that follows from dominating ratios, and a note.

    Args:
        above: The ratios.
        question: Quantity to compute.
        tolerance: Requested relative width.
        outer: A known bracket, whose upper end is returned if no ratio gives a smaller one.
    """
    lower, most = outer
    upper, notes, worse = most, "no amplification", 0
    for each in above:
        if (question.asks == "epsilon" and each.meant > 2.0 * upper) or worse > 1:
            continue
        found, note = _dominated(each, question, tolerance, (lower, upper))
        worse = 0 if found < upper else worse + (each.meant > 0.0 and upper < most)
        if found < upper:
            upper, notes = found, note
    return upper, notes


def _falling(
    bounds: Bounds, question: Question, tolerance: float, unamplified: float
) -> tuple[float, float, str]:
    """Return a bracket of a false positive rate: the dominating ratios prove its lower end."""
    lower, upper = outermost(question, unamplified)
    notes = "no amplification"
    for each in bounds.above:
        at = (question.at - each.moved) * (1.0 - FEW_OPERATIONS) if each.moved > 0.0 else question.at
        if at <= 0.0:
            continue
        found, _, note = enclosed(each.ratio, replace(question, at=at), tolerance, (0.0, at))
        found = (found - each.moved) * (1.0 - FEW_OPERATIONS) if each.moved > 0.0 else found
        if found > lower:
            lower, notes = found, note
    for ratio in bounds.below:
        upper = min(upper, enclosed(ratio, question, tolerance, (lower, upper))[1])
    return lower, upper, f"lower end: {notes}"


def closed_form(question: Question, mu: float) -> Ends:
    """Return a bracket of the quantity for the Gaussian mechanism with the distance mu of the means."""
    ends = [end for side in (-1.0, 1.0) for end in question.gaussian(mu * (1.0 + side * NOISE_BRACKET))]
    return min(ends), max(ends)


def outermost(question: Question, unamplified: float) -> Ends:
    """Return the bracket between equal pairs and no amplification."""
    lower, upper = closed_form(question, unamplified)
    return (lower, question.trivial) if question.falls else (question.trivial, upper)


def _dominated(above: Above, question: Question, tolerance: float, outer: Ends) -> tuple[float, str]:
    """Return the upper bound that follows from a dominating ratio, and a note."""
    if above.moved == 0.0:
        _, upper, note = enclosed(above.ratio, question, tolerance, outer)
        return upper, note
    if question.asks in ("mu", "true_positive_rate"):
        return _moved_power(above, question, tolerance, outer[1])
    return _moved(above, question, tolerance, outer)


def _moved(above: Above, question: Question, tolerance: float, outer: Ends) -> tuple[float, str]:
    r"""Return an upper bound from a dominating ratio within a total variation distance $\tau$, and a note.

    $\delta(\varepsilon) \le \delta_X(\varepsilon) + (1 + e^\varepsilon) \tau$. For an epsilon of at most
    `top`, it suffices that the ratio has a delta of at most $\delta - (1 + e^{top}) \tau$; a smaller bound
    serves as the next `top`.
    """
    if question.asks != "epsilon":
        if question.at > LARGEST_LOSS:
            return outer[1], ""
        _, upper, note = enclosed(above.ratio, question, tolerance, (outer[0], 1.0))
        extra = (1.0 + math.exp(question.at)) * above.moved
        return min(outer[1], probability_at_most(min(1.0, upper + extra), FEW_OPERATIONS)), note
    best, note = outer[1], ""
    top = min(best, above.meant) if above.meant > 0.0 else best
    for _ in range(6):
        if not top <= LARGEST_LOSS:
            break
        rest = question.at - (1.0 + math.exp(top)) * above.moved * (1.0 + FEW_OPERATIONS)
        if rest <= 0.0:
            break
        asked = replace(question, at=rest * (1.0 - FEW_OPERATIONS))
        _, found, detail = enclosed(above.ratio, asked, tolerance, (0.0, math.inf))
        if found > top:
            break
        best, note = min(best, found), detail
        if found > 0.999 * top:
            break
        top = found
    return best, note


def _moved_power(above: Above, question: Question, tolerance: float, most: float) -> tuple[float, str]:
    r"""Return an upper bound of a true positive rate from a ratio within a total variation distance.

    With the distance $\tau$, the rate at a is at most that of the ratio at $a + \tau$, plus $\tau$. For mu,
    only the known bound is returned.
    """
    at = (question.at + above.moved) * (1.0 + FEW_OPERATIONS)
    if question.asks == "mu" or at >= 1.0:
        return most, ""
    _, upper, note = enclosed(above.ratio, replace(question, at=at), tolerance, (at, 1.0))
    return min(most, probability_at_most(upper + above.moved, FEW_OPERATIONS)), note


def estimated(bounds: Bounds, question: Question, tolerance: float) -> Cost:
    """Return a conservative estimate of the cost of `enclosed_run`."""
    ratios = [each.ratio for each in bounds.above] * (3 if any(each.moved for each in bounds.above) else 1)
    ratios += [] if bounds.tight else bounds.below
    one = [cost(question, ratio.width, tolerance, ratio.levels) for ratio in ratios]
    work = [
        each.seconds * (ratio.combinations + 1) / (ratio.levels + 1)
        for each, ratio in zip(one, ratios, strict=True)
    ]
    return Cost(seconds=0.01 + 2.0 * sum(work), bytes=2.0 * max(each.bytes for each in one))
