"""Epsilon and delta of a composition of private steps: both ends, from distributions and closed forms."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from privcore.accountant.steps import WIDENING, PrivateStep
from privcore.errors import DomainError
from privcore.likelihood_ratio.questions import MuQuestion, PowerQuestion, Question, requested
from privcore.likelihood_ratio.ratios import Composed, Gaussian, Ratio, enclosed, product
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from privcore.params import EPSILON
from privcore.registry import find_problem
from privcore.training import written
from privcore.training.certified import Certified
from privcore.training.params import FALSE_POSITIVE_RATE, SMALLEST_FALSE_POSITIVE_RATE
from privcore.training.problems import InPhases

BOTH = "add-remove"
"""Both directions: a neighbouring relation is symmetric."""
LARGEST_LOSS = 600.0
"""At epsilons below minus this number, delta is bounded by 1."""
DATA_SETS = 2
"""Number of worst data sets whose lower bounds are compared."""


@dataclass(frozen=True)
class Composition:
    """Steps with their counts, in an order that does not depend on the order of composition."""

    counted: tuple[tuple[PrivateStep, int], ...]

    @classmethod
    def of(cls, counts: Mapping[PrivateStep, int]) -> "Composition":
        """Return the composition of counted steps."""
        return cls(tuple(sorted(counts.items(), key=lambda item: repr(item[0]))))

    def epsilon(self, delta: float, tolerance: float) -> tuple[float, float]:
        """Return lower and upper end of the smallest epsilon >= 0 with a profile of at most delta.

        Args:
            delta: Probability in [0, 1].
            tolerance: Requested relative width.
        """
        if not self.counted or delta >= 1.0:
            return 0.0, 0.0
        if delta <= 0.0:
            return self._pure()
        if (run := self._run) is not None and delta < 1.0:
            return _of_run("run-epsilon", run, tolerance, delta=delta)
        outer = self._epsilon_outer(delta)
        return self._ends(Question(asks="epsilon", at=delta, adjacency=BOTH), tolerance, outer)

    def delta(self, epsilon: float, tolerance: float) -> tuple[float, float]:
        """Return lower and upper end of the profile at epsilon.

        Args:
            epsilon: Privacy loss threshold, >= 0, possibly infinity.
            tolerance: Requested relative width.
        """
        if not self.counted:
            return 0.0, 0.0
        if epsilon == math.inf:
            return 0.0, self._infinite
        if (run := self._run) is not None and epsilon <= EPSILON.upper:
            return _of_run("run-delta", run, tolerance, epsilon=epsilon)
        outer = self._delta_outer(epsilon)
        return self._ends(Question(asks="delta", at=epsilon, adjacency=BOTH), tolerance, outer)

    def true_positive_rate(self, false_positive_rate: float, tolerance: float) -> tuple[float, float]:
        """Return both ends of the largest true positive rate of a membership test, of both orders.

        Args:
            false_positive_rate: Rate in [0, 1].
            tolerance: Requested relative width.
        """
        if not self.counted or false_positive_rate >= 1.0:
            return false_positive_rate, false_positive_rate
        if false_positive_rate <= 0.0:
            return 0.0, self._infinite
        if (run := self._run) is not None and false_positive_rate >= FALSE_POSITIVE_RATE.lower:
            return _of_run("run-tpr", run, tolerance, false_positive_rate=false_positive_rate)
        question = PowerQuestion(at=false_positive_rate, adjacency=BOTH)
        return self._ends(question, tolerance, self._rate_outer(question, 1.0))

    def mu(self, smallest_rate: float, tolerance: float) -> tuple[float, float]:
        """Return both ends of the largest mu at false positive rates from a smallest rate on.

        Args:
            smallest_rate: Smallest false positive rate a, in (0, 1/2); the largest one is 1 - a.
            tolerance: Requested relative width.
        """
        if not self.counted:
            return 0.0, 0.0
        if (run := self._run) is not None and smallest_rate >= SMALLEST_FALSE_POSITIVE_RATE.lower:
            return _of_run("run-mu", run, tolerance, smallest_false_positive_rate=smallest_rate)
        question = MuQuestion(at=smallest_rate, adjacency=BOTH)
        return self._ends(question, tolerance, self._rate_outer(question, math.inf))

    @cached_property
    def _run(self) -> tuple[str, str] | None:
        """The text of equal steps as a phase of a training run, with the adjacency; None for other steps."""
        if len(self.counted) > 1 or self.counted[0][0].run is None:
            return None
        phase, adjacency = self.counted[0][0].run
        try:
            return written((replace(phase, steps=self.counted[0][1]),)), adjacency  # type: ignore[call-arg]
        except DomainError:  # more steps than a training run has
            return None

    def _rate_outer(self, question: PowerQuestion | MuQuestion, largest: float) -> tuple[float, float]:
        """Return a bracket in closed form, if a Gaussian mechanism dominates; it is tight for one alone."""
        lower, upper = question.trivial, largest
        if self._sigma < math.inf and self._reach == 0.0 and self._infinite == 0.0:
            upper = question.gaussian(WIDENING / self._sigma)[1]
        if self._gaussian_alone:
            lower = question.gaussian(1.0 / (self._sigma * WIDENING))[0]
        return lower, upper

    def _ends(self, question: Question, tolerance: float, outer: tuple[float, float]) -> tuple[float, float]:
        """Return both ends; if their distributions differ, each is computed separately."""
        if self._gaussian_alone or outer[1] <= outer[0]:
            return outer
        tolerance = requested(question.asks, tolerance)
        lower, upper = _enclosed(self._dominating, question, tolerance, outer)
        if self._attained != (self._dominating,):
            ends = (_enclosed(ratio, question, tolerance, outer)[0] for ratio in self._attained)
            lower = max(outer[0], *ends) if self._attained else outer[0]
        return lower, upper

    @cached_property
    def _gaussian_alone(self) -> bool:
        """Whether the composition is one Gaussian mechanism, whose closed form is exact."""
        return all(step.dominating is None for step, _ in self.counted)

    @cached_property
    def _sigma(self) -> float:
        """Noise multiplier of a Gaussian mechanism that dominates all steps with Gaussian noise.

        Counted: squares err by at most 6 u, products with counts and the sum add 2 u, the quotient 1 u, and
        the root halves the sum; so the result errs by at most 5.5 u, and uses move it by 90 u.
        """
        total = math.fsum(count * step.square for step, count in self.counted)
        return math.sqrt(1.0 / total) if total > 0.0 else math.inf

    @cached_property
    def _infinite(self) -> float:
        """Upper bound of the probability of an infinite loss."""
        if any(step.infinite == 1.0 for step, _ in self.counted):
            return 1.0
        kept = math.fsum(count * math.log1p(-step.infinite) for step, count in self.counted if step.infinite)
        return min(1.0, -math.expm1(kept) * WIDENING)

    @cached_property
    def _reach(self) -> float:
        """Upper bound of the sum of the finite losses of the steps without Gaussian noise."""
        remove = math.fsum(count * step.reach_remove for step, count in self.counted)
        add = math.fsum(count * step.reach_add for step, count in self.counted)
        return max(remove, add) * WIDENING

    def _pure(self) -> tuple[float, float]:
        """Return both ends of epsilon at delta 0."""
        if self._infinite > 0.0 or self._sigma < math.inf:
            attained = any(step.square > 0.0 for step, _ in self.counted)
            return (math.inf if attained else 0.0), math.inf
        known = [(step, count) for step, count in self.counted if step.attained]
        remove = math.fsum(count * step.reach_remove for step, count in known)
        add = math.fsum(count * step.reach_add for step, count in known)
        return max(remove, add) / WIDENING**3, self._reach

    def _epsilon_outer(self, delta: float) -> tuple[float, float]:
        """Return a bracket of epsilon in closed form; it is tight for a Gaussian mechanism alone."""
        left = (delta - self._infinite) * (2.0 - WIDENING)
        if left <= 0.0:
            return 0.0, math.inf
        if self._sigma == math.inf:
            return 0.0, self._reach
        lower = gaussian_epsilon_bounds(self._sigma * WIDENING, delta)[0] if self._gaussian_alone else 0.0
        return lower, (gaussian_epsilon_bounds(self._sigma / WIDENING, left)[1] + self._reach) * WIDENING

    def _delta_outer(self, epsilon: float) -> tuple[float, float]:
        """Return a bracket of delta in closed form; it is tight for a Gaussian mechanism alone."""
        if self._sigma < math.inf:
            lower = gaussian_delta_bounds(self._sigma * WIDENING, epsilon)[0] if self._gaussian_alone else 0.0
            beyond = (epsilon - self._reach) - abs(epsilon - self._reach) * (WIDENING - 1.0)
            upper = 1.0
            if beyond > -LARGEST_LOSS:
                upper = gaussian_delta_bounds(self._sigma / WIDENING, beyond)[1]
        else:
            # (e^r - e^epsilon) / (1 + e^r) for epsilon < r, the randomized response of the total loss r
            lower, room = 0.0, min(0.0, epsilon - self._reach)
            upper = -math.expm1(room) / (1.0 + math.exp(-self._reach)) * WIDENING
        return lower, min(1.0, (upper + self._infinite) * WIDENING)

    @cached_property
    def _dominating(self) -> Ratio:
        """Ratio that dominates the composition."""
        return self._product([(step.dominating, count) for step, count in self.counted])

    @cached_property
    def _attained(self) -> tuple[Ratio, ...]:
        """Ratios of pairs of neighbours, one for each kind of worst data set."""
        found: list[Ratio] = []
        for kind in range(DATA_SETS):
            ratios = [
                (step.attained[min(kind, len(step.attained) - 1)] if step.attained else None, count)
                for step, count in self.counted
            ]
            if any(ratio is not None for ratio, _ in ratios) or self._unamplified > 0.0:
                ratio = self._product(ratios)
                if ratio not in found:
                    found.append(ratio)
        return tuple(found)

    @cached_property
    def _unamplified(self) -> float:
        """Sum of the squares of the Gaussian steps without sampling."""
        return math.fsum(count * step.square for step, count in self.counted if step.dominating is None)

    def _product(self, ratios: list[tuple[Ratio | None, int]]) -> Ratio:
        """Return the distribution of the given parts, and of all Gaussian steps without sampling."""
        parts = [
            Composed(ratio, count) if count > 1 else ratio for ratio, count in ratios if ratio is not None
        ]
        if self._unamplified > 0.0:
            parts.append(Gaussian(math.sqrt(self._unamplified)))
        return product(tuple(parts))


@lru_cache(maxsize=256)
def _of_run(kind: str, run: tuple[str, str], tolerance: float, **at: float) -> tuple[float, float]:
    """Return the bracket of a problem about a training run, as all doors compute it."""
    asked = find_problem(kind).from_fields({"phases": run[0], "adjacency": run[1], **at})
    assert isinstance(asked, InPhases)
    answer = Certified(tolerance=tolerance).answer(asked, seed=0)
    return answer.lower, answer.upper


@lru_cache(maxsize=256)
def _enclosed(
    ratio: Ratio, question: Question, tolerance: float, outer: tuple[float, float]
) -> tuple[float, float]:
    """Return the bracket of the pair with a likelihood-ratio distribution."""
    lower, upper, _ = enclosed(ratio, question, tolerance, outer)
    return lower, upper
