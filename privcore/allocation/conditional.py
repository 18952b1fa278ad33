"""Brackets of k-of-t allocation from conditional moments, given the sums of the losses of all epochs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import scipy

from privcore import params
from privcore.allocation.certified import ANSWERED, Answered, closed_form, leaks, rate_of, step_of
from privcore.allocation.reduction import MOST_STEPS, exact
from privcore.answer import Answer
from privcore.likelihood_ratio.allocated.ends import (
    Conditional,
    conditional,
    lower_add,
    lower_remove,
    upper_add,
    upper_remove,
)
from privcore.likelihood_ratio.allocated.k_of_t import k_of_t, levels_of
from privcore.likelihood_ratio.allocated.losses import PLACES, Participation, rounded_losses, spread_losses
from privcore.likelihood_ratio.allocated.saddle import Saddle, saddle
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    Resolution,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import (
    FIRST_DELTA,
    SHARE,
    SMALLEST_DELTA,
    Question,
    enough,
    question_of,
    tier,
)
from privcore.likelihood_ratio.steps import Step
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import UNIT
from privcore.papers import FELDMAN_SHENFELD

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


FEW = 12.0
"""Variance below which the distributions of an epoch take long."""
WIDE = 0.6
"""Width of one step, as in `Step.width`, from which the sums of few participations take long."""
RARE = 0.01
"""Share of the steps below which they take long, too."""
MOST_LOOKS = 3
"""Number of distributions that may be computed to find the order of magnitude of a delta."""
PRODUCT = 0.5
"""Width of the cells of a product of epochs over the distance of two nodes."""


class AllocationConditional(Method[Answered]):
    r"""Enclose k-of-t allocation, for 1 < k < t, by the moments of its ratio at every sum of losses.

    The losses are those of Poisson sampling at the rate for which k participations are expected at the
    threshold. At every sum of them, the mass and the first two moments of the ratio R of k out of t are
    convolutions of those of one step. Parabolas above the hinge $(R - e^\varepsilon)_+$ give the upper end,
    and the event of the best sums the lower end. The expected number of participations is a second
    coordinate.
    """

    name = "allocation.conditional"
    problems = ANSWERED
    direction = Direction.ENCLOSURE
    reference = (
        f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair); conditional moments given sums of losses: "
        "docs/certified.md"
    )
    shares = ("sigma", "scale", "local_epsilon", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def applies(self, problem: Answered) -> str | None:
        if exact(problem.steps, problem.participations):
            return "Expected 1 < participations < steps: otherwise allocation.certified is tight."
        if problem.steps > MOST_STEPS:
            return f"Expected at most {MOST_STEPS} steps in an epoch."
        if getattr(problem, "epsilon", 0.0) < 0.0:
            return "Expected an epsilon of at least 0."
        return leaks(problem)

    def cost(self, problem: Answered) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        return cost_of_choice(step_of(problem), _choice(problem), rate_of(problem), question_of(problem))

    def answer(self, problem: Answered, seed: int) -> Answer:
        lower, upper, detail = enclosed_choice(
            step_of(problem),
            _choice(problem),
            rate_of(problem),
            question_of(problem),
            self.tolerance,
            closed_form(problem),
        )
        return Answer.enclosure(lower, upper, detail=detail)


def _choice(problem: Answered) -> Participation:
    return Participation(participations=problem.participations, steps=problem.steps, epochs=problem.epochs)


def cost_of_choice(step: Step, choice: Participation, rate: float, question: Question) -> Cost:
    """Return a conservative estimate of the cost of `enclosed_choice`.

    Args:
        step: Mechanism of a step.
        choice: Numbers of participations, steps and epochs, 1 < k < t.
        rate: Probability that an epoch includes the example.
        question: Whether epsilon or delta is computed, and where.
    """
    k, t, epochs = choice.participations, choice.steps, choice.epochs
    sums = min(2.0**18, 150.0 * math.sqrt(t * epochs))
    overlaps = min(k, 16.0 * math.sqrt(k * (1.0 - k / t) + 1.0))
    one = 0.2 if question.asks == "epsilon" else 0.8  # a delta needs finer levels more often
    seconds = len(DIRECTIONS[question.adjacency]) * (one + 2e-8 * sums * (overlaps + 20.0))
    if (k * (1.0 - k / t) < FEW) + (step.width() > WIDE) + (k < RARE * t) >= 2:
        seconds += 3.0
    if epochs > 1 or rate < 1.0:
        seconds += 10.0 if k * (1.0 - k / t) < FEW else 3.0  # the second level of the distributions
    return Cost(seconds=seconds, bytes=4e8)


def enclosed_choice(
    step: Step,
    choice: Participation,
    rate: float,
    question: Question,
    tolerance: float,
    outer: tuple[float, float],
) -> tuple[float, float, str]:
    """Return a bracket of k out of t over several epochs, and a note.

    Args:
        step: Mechanism of a step.
        choice: Numbers of participations, steps and epochs, 1 < k < t.
        rate: Probability that an epoch includes the example.
        question: Whether epsilon or delta is computed, and where.
        tolerance: Requested relative width.
        outer: A known bracket; the result lies within it.
    """
    bracket, detail = outer, "closed-form bounds"
    if rate == 1.0:
        bracket, detail = _summed(step, choice, question, bracket, tolerance)
    if (choice.epochs > 1 or rate < 1.0) and not narrow(bracket, question, tolerance):
        bracket, detail = _composed(step, choice, rate, question, bracket, tolerance)
    if bracket[1] > bracket[0] * (1.0 + tolerance):
        detail += f"; wider than the tolerance of {tolerance:g}"
    return *bracket, detail


def _summed(
    step: Step, choice: Participation, question: Question, outer: tuple[float, float], tolerance: float
) -> tuple[tuple[float, float], str]:
    """Return both ends from the sums of the losses of all epochs, and a note."""
    lower, upper, details = 0.0, 0.0, []
    for direction in DIRECTIONS[question.adjacency]:
        run = OneDirection(step, choice, direction, question, tolerance)
        low, high, detail = run.enclosed((max(lower, outer[0]), outer[1]))
        lower, upper = max(lower, low), max(upper, high)
        details.append(f"{direction}: {detail}")
    return (max(lower, outer[0]), min(upper, outer[1])), "; ".join(details)


def _composed(
    step: Step,
    choice: Participation,
    rate: float,
    question: Question,
    outer: tuple[float, float],
    tolerance: float,
) -> tuple[tuple[float, float], str]:
    """Return both ends from the distributions of one epoch, and a note."""
    k, t, epochs = choice.participations, choice.steps, choice.epochs
    (lower, upper), note = outer, "closed-form bounds"
    scouting = question.asks == "delta"
    try:
        delta = _expected(step, choice, question)
    except LikelihoodRangeError as error:
        return (lower, upper), f"{note}; {error}"
    looks = 0
    levels = list(levels_of(k, t))
    while levels and delta >= SMALLEST_DELTA:
        level = levels[0] if scouting else levels.pop(0)
        tail = tier(SHARE * delta / epochs)
        try:
            epoch = k_of_t(step, k, t, tail, level)
            res = Resolution(fineness=PRODUCT * level.nodes, tail=tail)
            bracket = product_of(epoch if rate == 1.0 else mixed(epoch, rate, res), epochs, res)
        except LikelihoodRangeError as error:
            return (lower, upper), f"{note}; {error}"
        low, high = question.ends(bracket)
        lower, upper = max(lower, low), min(upper, high)
        note = f"{epoch.upper.x.size} atoms of an epoch, degree {level.degree}"
        if scouting:
            scouting = 0.5 * delta > low and delta > SMALLEST_DELTA
            delta = max(min(low if low > 0.0 else 1e-10 * delta, delta), SMALLEST_DELTA)
            looks += 1
            scouting &= looks < MOST_LOOKS
        elif narrow((lower, upper), question, tolerance):
            break
    return (lower, upper), note


def _expected(step: Step, choice: Participation, question: Question) -> float:
    """Return the delta in question, or about the delta if every epoch includes the example."""
    if question.asks == "epsilon":
        return question.at
    base = step.ratio(Resolution(fineness=0.1, tail=1e-30))
    ends = [
        saddle(base.upper, choice, direction, epsilon=side * question.at).log_delta
        for direction, side in (("remove", 1.0), ("add", -1.0))
        if direction in DIRECTIONS[question.adjacency]
    ]
    return max(min(FIRST_DELTA, math.exp(max(ends))), SMALLEST_DELTA)
