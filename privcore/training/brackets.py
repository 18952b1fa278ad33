"""The bracket of a quantity of a training run that follows from ratios which bound the run."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privcore.allocation.conditional import cost_of_choice, enclosed_choice
from privcore.likelihood_ratio.allocated.losses import Participation
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, Resolution
from privcore.likelihood_ratio.grid import MOST_CELLS, Array
from privcore.likelihood_ratio.profile import powers_lower, powers_upper
from privcore.likelihood_ratio.questions import (
    SHARE,
    SMALLEST_DELTA,
    PowerQuestion,
    Question,
    cost,
    enough,
    tier,
)
from privcore.likelihood_ratio.ratios import BEYOND, Composed, Gaussian, Ratio, attained, enclosed, halved
from privcore.likelihood_ratio.steps import GaussianStep
from privcore.method import Cost
from privcore.numerics.rounding import FEW_OPERATIONS, NOISE_BRACKET, probability_at_most
from privcore.training.epochs import ChosenSteps
from privcore.training.phase import RELATIONS, Phase, unamplified
from privcore.training.samplers import SLOW, Above, Bounds, composed

Ends = tuple[float, float]
BEYOND_DOUBLES = 16.0
"""Inverse noise multiplier from which the ratio of a step exceeds doubles: sums of losses are quick."""
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
            return *closed_form(question, ratio.mu), question.alone
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
    serves as the next `top`. The best of several runs is within the distance times their mean number.
    """
    moved = above.moved * question.runs
    if not question.is_epsilon:
        if question.at > LARGEST_LOSS:
            return outer[1], ""
        _, upper, note = enclosed(above.ratio, question, tolerance, (outer[0], 1.0))
        extra = (1.0 + math.exp(question.at)) * moved
        return min(outer[1], probability_at_most(min(1.0, upper + extra), FEW_OPERATIONS)), note
    best, note = outer[1], ""
    top = min(best, above.meant) if above.meant > 0.0 else best
    for _ in range(6):
        if not top <= LARGEST_LOSS:
            break
        rest = question.at - (1.0 + math.exp(top)) * moved * (1.0 + FEW_OPERATIONS)
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
        each.seconds * (ratio.combinations + 1 if ratio.width < BEYOND_DOUBLES else 1) / (ratio.levels + 1)
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


FINENESS = (1.0 / 10.0, 1.0 / 20.0, 1.0 / 40.0, 1.0 / 80.0)
"""Widths of cells in local standard deviations, tried in this order until all brackets are narrow. The last
width is for runs whose two ends have the same distribution."""
AFFORDABLE = 1.0
"""Seconds that the distributions of one width of cells may take, as estimated from the number of cells."""
MOVED_TOLERANCE = 0.05
"""Relative width of brackets from bounds within a total variation distance, which take longer."""
SMALLEST = 1e-12
"""Probabilities below this may have wide brackets."""


class Profile:
    """Distributions that bound one training run, from which many quantities are read.

    Args:
        run: Phases of the run.
        adjacency: A word of `RELATIONS`.
        questions: Quantities to compute.
        tolerance: Requested relative width of the brackets.
    """

    def __init__(
        self, run: Sequence[Phase], adjacency: str, questions: Sequence[Question], tolerance: float = 0.01
    ) -> None:
        self.run, self.relation = run, RELATIONS[adjacency]
        self.adjacency, self.tolerance, self.questions = adjacency, tolerance, questions
        self.scale = min((each.scale for each in questions if each.scale is not None), default=SMALLEST)
        self.bounds = composed([phase.bounds(self.relation, self.scale) for phase in run])
        self.unamplified = unamplified(run, self.relation)
        self.brackets: dict[Ratio, RatioBracket] = {}
        self.fewer: dict[Ratio, Ratio] = {}
        """Runs for lower ends: with fewer steps, which is post-processing, if ratios are beyond doubles."""
        ratio = self.bounds.above[0].ratio
        self.exact = ratio.mu if self.bounds.tight and isinstance(ratio, Gaussian) else None

    def answers(self) -> list[Ends]:
        """Return both ends of every quantity, in the order of the questions."""
        if self.exact is not None:
            return [closed_form(question, self.exact) for question in self.questions]
        found = [outermost(question, self.unamplified) for question in self.questions]
        for fineness in FINENESS if self.bounds.tight else FINENESS[:-1]:
            if not self._build(fineness):
                break
            found = [
                self._narrowed(question, *ends) for question, ends in zip(self.questions, found, strict=True)
            ]
            if all(
                self._narrow(question, *ends) for question, ends in zip(self.questions, found, strict=True)
            ):
                break
        return [self._moved(question, *ends) for question, ends in zip(self.questions, found, strict=True)]

    def curve(self, rates: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds of the largest true positive rates at false positive rates.

        They use the distributions of `answers`, and a bound of the run without sampling.
        """
        asked = [PowerQuestion(at=float(rate), adjacency=self.adjacency) for rate in rates]
        ends = [
            outermost(each, self.unamplified) if self.exact is None else closed_form(each, self.exact)
            for each in asked
        ]
        lower, upper = (np.array(some) for some in zip(*ends, strict=True))
        for above in self.bounds.above:
            if above.moved == 0.0 and above.ratio in self.brackets:
                found = powers_upper(self.brackets[above.ratio].upper, rates, self.adjacency)
                upper = np.minimum(upper, found)
        for ratio in self.fewer.values():
            if ratio in self.brackets:
                lower = np.maximum(lower, powers_lower(self.brackets[ratio].lower, rates, self.adjacency))
        return lower, upper

    def _build(self, fineness: float) -> bool:
        """Build the distributions with cells of this width, and return whether that was possible."""
        all_ratios = dict.fromkeys([*(above.ratio for above in self.bounds.above), *self.bounds.below])
        ratios = [each for each in all_ratios if each.combinations < SLOW or each not in self.brackets]
        if sum(self._seconds(ratio, fineness) for ratio in ratios) > AFFORDABLE and self.brackets:
            return False
        built = False
        for ratio in ratios:
            built = self._try(ratio, fineness) or built
        for ratio in self.bounds.below:
            fewer = self.fewer.get(ratio, ratio)
            while fewer not in self.brackets and (half := halved(fewer)) is not None:
                fewer = half
                built = self._try(fewer, fineness) or built
            self.fewer[ratio] = fewer
        return built

    def _try(self, ratio: Ratio, fineness: float) -> bool:
        """Build a pair of distributions, and return whether they are in the range of doubles."""
        tail = max(tier(SHARE * self.scale) * tier(1.0 / ratio.copies), SMALLEST_DELTA)
        try:
            self.brackets[ratio] = ratio.bracket(Resolution(fineness=fineness, tail=tail))
        except LikelihoodRangeError:
            return False
        return True

    def _seconds(self, ratio: Ratio, fineness: float) -> float:
        """Return an estimate of the time that a distribution takes, from that of the last width of cells."""
        if ratio not in self.brackets:
            return 0.0
        cells = min(self.brackets[ratio].upper.x.size / fineness / 10.0, MOST_CELLS)
        return (ratio.combinations + 1) * (8e-4 + 1.2e-8 * cells * cells)

    def _narrowed(self, question: Question, lower: float, upper: float) -> Ends:
        """Return the ends from the present distributions, where they are better."""
        dominating = [
            question.upper(self.brackets[above.ratio].upper)
            for above in self.bounds.above
            if above.moved == 0.0 and above.ratio in self.brackets
        ]
        processed = [
            question.lower(self.brackets[ratio].lower)
            for ratio in self.fewer.values()
            if ratio in self.brackets
        ]
        if question.falls:
            return max([lower, *dominating]), min([upper, *processed])
        return max([lower, *processed]), min([upper, *dominating])

    def _narrow(self, question: Question, lower: float, upper: float) -> bool:
        tiny = question.asks not in ("epsilon", "mu") and upper < SMALLEST
        return tiny or upper <= lower * (1.0 + self.tolerance)

    def _moved(self, question: Question, lower: float, upper: float) -> Ends:
        """Return the ends after bounds that hold only within a total variation distance.

        The distance is chosen for the size of a delta, so the bounds of epsilon are those for its own delta.
        """
        if question.falls or not any(above.moved > 0.0 for above in self.bounds.above):
            return lower, upper
        bounds = self.bounds
        if question.asks == "epsilon":
            bounds = composed([phase.bounds(self.relation, question.at) for phase in self.run])
        moved = [above for above in bounds.above if above.moved > 0.0]
        return lower, dominated_run(moved, question, MOVED_TOLERANCE, (lower, upper))[0]
