"""Many quantities of one training run at once, read from the same distributions."""

from collections.abc import Sequence

import numpy as np

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, Resolution
from privcore.likelihood_ratio.grid import MOST_CELLS, Array
from privcore.likelihood_ratio.profile import powers_lower, powers_upper
from privcore.likelihood_ratio.questions import SHARE, SMALLEST_DELTA, PowerQuestion, Question, tier
from privcore.likelihood_ratio.ratios import Gaussian, Ratio, halved
from privcore.training.bounds import SLOW, composed
from privcore.training.brackets import Ends, closed_form, dominated_run, outermost
from privcore.training.phase import RELATIONS, Phase, unamplified

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
