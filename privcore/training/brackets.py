"""The bracket of a quantity of a training run that follows from ratios which bound the run."""

import math
from collections.abc import Sequence
from dataclasses import replace

from privcore.allocation.conditional import cost_of_choice, enclosed_choice
from privcore.likelihood_ratio.losses import Participation
from privcore.likelihood_ratio.questions import Question, cost, enough
from privcore.likelihood_ratio.ratios import BEYOND, Composed, Gaussian, Ratio, attained, enclosed
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost
from privcore.numerics.rounding import FEW_OPERATIONS, NOISE_BRACKET, probability_at_most
from privcore.training.bounds import Above, Bounds
from privcore.training.chosen import ChosenSteps

Ends = tuple[float, float]
LARGEST_LOSS = 600.0
"""Largest epsilon at which a bound moved by a total variation distance is used."""


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
    stages = bounds.stages
    if len(stages) > 1:
        lower, upper = outermost(question, unamplified)
        found = list[str]()
        for stage in stages:
            low, high, note = enclosed_run(stage, question, tolerance, unamplified)
            lower, upper = max(lower, low), min(upper, high)
            found.append(note)
            if upper <= lower * (1.0 + enough(question.asks, tolerance, lower)):
                break
        return lower, upper, "; ".join(found)
    if bounds.tight:
        ratio = bounds.above[0].ratio
        if isinstance(ratio, Gaussian):
            return *closed_form(question, ratio.mu), "closed form"
        outer = outermost(question, unamplified)
        alone = _chosen_alone(ratio, question)
        if alone is not None:
            return enclosed_choice(*alone, 1.0, question, tolerance, outer)
        lower, upper, note = enclosed(ratio, question, tolerance, outer)
        if note.endswith(BEYOND):
            proved = attained(ratio, question, tolerance, outer)
            lower, upper = (lower, min(upper, proved)) if question.falls else (max(lower, proved), upper)
        return lower, upper, note
    if question.falls:
        return _falling(bounds, question, tolerance, unamplified)
    lower, most = outermost(question, unamplified)
    upper, notes = dominated_run(bounds.above, question, tolerance, (lower, most))
    for ratio in bounds.below:
        lower = max(lower, attained(ratio, question, tolerance, (lower, upper)))
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
        upper = min(upper, attained(ratio, question, tolerance, (lower, upper)))
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
    stages = bounds.stages
    if len(stages) > 1:
        costs = [estimated(stage, question, tolerance) for stage in stages]
        return Cost(seconds=sum(each.seconds for each in costs), bytes=max(each.bytes for each in costs))
    alone = _chosen_alone(bounds.above[0].ratio, question) if bounds.tight else None
    if alone is not None:
        return cost_of_choice(*alone, 1.0, question)
    ratios = [each.ratio for each in bounds.above] * (3 if any(each.moved for each in bounds.above) else 1)
    ratios += [] if bounds.tight else bounds.below
    one = [cost(question, ratio.width, tolerance, ratio.levels) for ratio in ratios]
    work = [
        each.seconds * (ratio.combinations + 1) / (ratio.levels + 1)
        for each, ratio in zip(one, ratios, strict=True)
    ]
    return Cost(seconds=0.01 + 2.0 * sum(work), bytes=2.0 * max(each.bytes for each in one))


def _chosen_alone(ratio: Ratio, question: Question) -> tuple[GaussianStep, Participation] | None:
    """Return the mechanism of a step and the choice of steps of a run that is k of t; None for other runs.

    The sums of losses answer an epsilon, or a delta at an epsilon of at least 0; None for other quantities.

    Args:
        ratio: Ratio of the run.
        question: Quantity to compute.
    """
    if question.asks not in ("epsilon", "delta") or (question.asks == "delta" and question.at < 0.0):
        return None
    epoch, epochs = (ratio.ratio, ratio.times) if isinstance(ratio, Composed) else (ratio, 1)
    if not isinstance(epoch, ChosenSteps):
        return None
    choice = Participation(participations=epoch.participations, steps=epoch.steps, epochs=epochs)
    return GaussianStep(1.0 / epoch.s), choice
