"""Brackets of one direction of k-of-t allocation, from the sums of the losses of all epochs."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import scipy

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioBracket, Resolution
from privcore.likelihood_ratio.ends import (
    Conditional,
    conditional,
    lower_add,
    lower_remove,
    upper_add,
    upper_remove,
)
from privcore.likelihood_ratio.losses import (
    PLACES,
    Participation,
    Saddle,
    rounded_losses,
    saddle,
    spread_losses,
)
from privcore.likelihood_ratio.questions import SHARE, SMALLEST_DELTA, Question, enough, tier
from privcore.likelihood_ratio.steps import Step
from privcore.numerics.rounding import UNIT

LEVELS = ((0, 0.002), (16, 0.0015), (32, 0.001), (64, 0.0005))
"""Degree of the places of the number of participations, and relative error that the lattice may cost."""
MOST_WORK = 3e7
"""Number of products of complex numbers after which no finer level is computed."""
FINENESS = 0.03
"""Width of the cells of the ratio of one step, in local standard deviations."""
FINER = 0.6
"""Spacing of the losses of a lower distribution relative to that of an upper one: its error is larger."""
NARROW = 1e-7
"""Relative width to which a root is enclosed."""

UPPER: dict[str, Callable[[Conditional, float], float]] = {"remove": upper_remove, "add": upper_add}
LOWER: dict[str, Callable[[Conditional, float], float]] = {"remove": lower_remove, "add": lower_add}


def narrow(bracket: tuple[float, float], question: Question, tolerance: float) -> bool:
    """Return whether no narrower bracket is needed."""
    return bracket[1] <= bracket[0] * (1.0 + enough(question.asks, tolerance, bracket[0]))


@dataclass(frozen=True)
class OneDirection:
    """One direction of one question."""

    step: Step
    choice: Participation
    direction: str
    question: Question
    tolerance: float

    def enclosed(self, outer: tuple[float, float]) -> tuple[float, float, str]:
        """Return both ends and a note; the levels are tried until the bracket is narrow enough."""
        (lower, upper), note = outer, "closed-form bounds"
        try:
            base, centre = self._centre()
        except LikelihoodRangeError as error:
            return lower, upper, f"closed-form bounds; {error}"
        if base is None:
            return lower, upper, f"closed-form bounds; delta below {SMALLEST_DELTA:g}"
        for degree, loss in LEVELS:
            spacing = self._spacing(centre, loss)
            if degree and (self.choice.epochs > 1 or self._work(centre, spacing, degree) > MOST_WORK):
                break
            try:
                above = conditional(
                    spread_losses(base.upper, centre.rate, spacing), self.choice, centre, degree
                )
                below = conditional(
                    rounded_losses(base.lower, centre.rate, FINER * spacing), self.choice, centre, degree
                )
            except LikelihoodRangeError as reason:
                return lower, upper, f"{note}; {reason}"
            if above is None or below is None:
                break
            lower, upper = max(lower, self._lower(below, base)), min(upper, self._upper(above, base))
            places = above.moments[0].tilted.shape[0]
            note = f"{above.loss.size} sums at the rate {centre.rate:.3g}, {places} places"
            if narrow((lower, upper), self.question, self.tolerance):
                break
        return lower, upper, note

    def _centre(self) -> tuple[RatioBracket | None, Saddle]:
        """Return the distribution of one step, and the sums near the threshold."""
        delta = self.question.at if self.question.asks == "epsilon" else 1e-5
        base = self._base(max(delta, SMALLEST_DELTA))
        if self.question.asks == "epsilon":
            centre = saddle(base.upper, self.choice, self.direction, delta=delta)
            threshold = centre.epsilon if self.direction == "remove" else -centre.epsilon
            if threshold <= 0.0:
                centre = saddle(base.upper, self.choice, self.direction, epsilon=0.0)
            return (base if delta >= SMALLEST_DELTA else None), centre
        threshold = self.question.at if self.direction == "remove" else -self.question.at
        centre = saddle(base.upper, self.choice, self.direction, epsilon=threshold)
        for _ in range(2):
            if centre.log_delta >= math.log(delta):
                break
            delta = max(math.exp(max(centre.log_delta, -700.0)), SMALLEST_DELTA)
            base = self._base(delta)
            centre = saddle(base.upper, self.choice, self.direction, epsilon=threshold)
        return (base if centre.log_delta > math.log(SMALLEST_DELTA) else None), centre

    def _base(self, delta: float) -> RatioBracket:
        tail = tier(SHARE * delta) * tier(1.0 / self.choice.steps)
        return self.step.ratio(Resolution(fineness=FINENESS, tail=tail))

    def _spacing(self, centre: Saddle, error: float) -> float:
        """Return the spacing of the lattice whose variance changes epsilon by a relative error."""
        steps = self.choice.steps * self.choice.epochs
        change = error * max(abs(centre.epsilon), 1e-6)
        if self.question.asks == "delta":
            change = error / centre.slope
        return min(
            math.sqrt(12.0 * change / (centre.slope + 1.0) / steps), 0.3 * centre.deviation / math.sqrt(steps)
        )

    def _work(self, centre: Saddle, spacing: float, degree: int) -> float:
        """Return the approximate number of products for the second moment."""
        k, t = self.choice.participations, self.choice.steps
        sums = 16.0 * centre.deviation / spacing
        counts = min(k, 16.0 * math.sqrt(k * (1.0 - k / t) + 1.0))
        return sums * (degree + 1) * (2.0 * counts + 40.0)

    def _slack(self, base: RatioBracket, epsilon: float, upper: bool) -> tuple[float, float, float]:
        """Return shift, factor and drift for the errors of the distribution of one step."""
        law = base.upper if upper else base.lower
        uses, steps = (self.choice.epochs * each for each in (self.choice.participations, self.choice.steps))
        shift = uses * (law.value_error + PLACES) + 16.0 * UNIT * (1.0 + abs(epsilon))
        error = steps * (law.mass_error + PLACES) + shift
        drift = uses * law.drift_remove if self.direction == "remove" else steps * law.drift_add
        return shift, math.exp(error) if error < 1.0 else math.inf, drift

    def _delta_upper(self, cells: Conditional, base: RatioBracket, epsilon: float) -> float:
        shift, factor, drift = self._slack(base, epsilon, upper=True)
        return min(1.0, factor * (UPPER[self.direction](cells, epsilon - shift) + drift))

    def _delta_lower(self, cells: Conditional, base: RatioBracket, epsilon: float) -> float:
        shift, factor, drift = self._slack(base, epsilon, upper=False)
        return max(0.0, LOWER[self.direction](cells, epsilon + shift) / factor - drift)

    def _upper(self, cells: Conditional, base: RatioBracket) -> float:
        """Return the upper end."""
        if self.question.asks == "delta":
            return self._delta_upper(cells, base, self.question.at)
        return _crossing(
            lambda epsilon: self._delta_upper(cells, base, epsilon),
            self.question.at,
            cells.centre,
            upper=True,
        )

    def _lower(self, cells: Conditional, base: RatioBracket) -> float:
        """Return the lower end."""
        if self.question.asks == "delta":
            return self._delta_lower(cells, base, self.question.at)
        return _crossing(
            lambda epsilon: self._delta_lower(cells, base, epsilon),
            self.question.at,
            cells.centre,
            upper=False,
        )


def _crossing(delta: Callable[[float], float], wanted: float, centre: Saddle, *, upper: bool) -> float:
    """Return an epsilon >= 0 at which a falling bound of delta is at most, or more than, the wanted delta.

    Args:
        delta: Bound of delta at an epsilon.
        wanted: Given delta.
        centre: Sums near the threshold, from which the search starts.
        upper: Whether an upper bound of epsilon is wanted: infinity if the search fails, else 0.
    """

    def above(epsilon: float) -> bool:
        return delta(epsilon) > wanted

    first = min(0.02 * max(abs(centre.epsilon), centre.deviation), 1.0 / centre.slope) + 1e-9
    low = high = max(0.0, abs(centre.epsilon))
    step = first
    while low > 0.0 and not above(low):
        low, step = max(0.0, low - step), 2.0 * step
    if low == 0.0 and not above(low):
        return 0.0
    step = first
    for _ in range(12):
        if not above(high):
            break
        low, high, step = high, high + step, 2.0 * step
    else:
        return math.inf if upper else low

    def excess(epsilon: float) -> float:
        return math.log(max(delta(epsilon), 1e-300)) - math.log(wanted)

    width = NARROW * max(high, 1e-9)
    root = float(scipy.optimize.brentq(excess, low, high, xtol=width))
    found = root + 2.0 * width if upper else root - 2.0 * width
    if above(max(found, 0.0)) != upper:
        return max(found, 0.0)
    return high if upper else low
