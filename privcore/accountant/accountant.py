"""Accountant for dp-accounting, jax_privacy and Opacus: both ends of epsilon and delta, both proved."""

from collections import Counter
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation, PrivacyAccountant
from dp_accounting.dp_event import DpEvent

from privcore import params
from privcore.accountant.composition import Composition
from privcore.accountant.events import Steps
from privcore.accountant.mechanisms import RefusedEventError, StepSetting
from privcore.accountant.relation import Relation
from privcore.accountant.steps import PrivateStep
from privcore.errors import DomainError

SENSITIVE = 10.0
"""Relative width of intervals of delta in units of that of epsilon, below the default tolerance."""


class PrivsweepAccountant(PrivacyAccountant):  # type: ignore[misc]
    """Accountant for the interface of `dp_accounting.PrivacyAccountant`, with both ends of each value.

    `get_epsilon` and `get_delta` return the upper ends, so the accountant can replace another one. Adaptive
    composition is covered if the parameters of the steps are fixed in advance.

    Args:
        neighboring_relation: Neighbouring relation.
        sensitivity: Distance, in clipping norms, of the sums of neighbours under `REPLACE_ONE`: 1 or 2. The
            noise multiplier of a Gaussian event without sampling does not say which one it refers to, and
            such events are refused if the distance is not given.
        tolerance: Requested relative width of intervals of epsilon; those of delta may be ten times as wide.

    Raises:
        DomainError: The relation is not a relation of dp-accounting, or a number is outside its domain.

    Example:
        >>> import dp_accounting
        >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
        >>> accountant = PrivsweepAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
        >>> lower, upper = accountant.compose(step, 1000).get_epsilon_interval(1e-5)
        >>> round(lower, 2), round(upper, 2)
        (1.83, 1.83)
    """

    def __init__(
        self,
        neighboring_relation: NeighboringRelation,
        sensitivity: int | None = None,
        tolerance: float = params.WIDTH,
    ) -> None:
        if not isinstance(neighboring_relation, NeighboringRelation):
            raise DomainError(
                "Expected a neighbouring relation of dp_accounting.NeighboringRelation, "
                f"got {neighboring_relation!r}."
            )
        super().__init__(neighboring_relation)
        relation = Relation(neighboring_relation.name)
        replaced = relation is Relation.REPLACE_ONE
        if sensitivity is not None and not (replaced and sensitivity in (1, 2)):
            raise DomainError(f"Expected sensitivity 1 or 2, with REPLACE_ONE only, got {sensitivity!r}.")
        self._setting = StepSetting(relation, sensitivity)
        self._tolerance = params.TOLERANCE.check(tolerance)
        self._counts: Counter[PrivateStep] = Counter()
        self._private = True

    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> PrivacyAccountant.CompositionErrorDetails | None:
        """Compose an event if asked to, and return the part that is not supported, if there is one."""
        found = Steps(self._setting)
        try:
            found.add(event, max(count, 1))  # `supports` asks with a count of 0
        except RefusedEventError as error:
            return self.CompositionErrorDetails(error.event, error.reason)
        if do_compose:
            self._counts.update(found.counts)
            self._private = self._private and found.private
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the upper end of the smallest epsilon at a delta; infinity for an event without privacy.

        Args:
            target_delta: Probability in [0, 1].
        """
        return self.get_epsilon_interval(target_delta)[1]

    def get_delta(self, target_epsilon: float) -> float:
        """Return the upper end of delta at an epsilon; it is 1 for an event without privacy.

        Args:
            target_epsilon: Privacy loss threshold in nats, >= 0.
        """
        return self.get_delta_interval(target_epsilon)[1]

    def get_epsilon_interval(self, target_delta: float) -> tuple[float, float]:
        """Return the lower and the upper end of the smallest epsilon at a delta.

        Args:
            target_delta: Probability in [0, 1].

        Raises:
            DomainError: The delta is outside [0, 1].
        """
        if not 0.0 <= target_delta <= 1.0:
            raise DomainError(f"Expected target_delta in [0, 1], got {target_delta}.")
        if not self._private:
            return (0.0 if target_delta == 1.0 else float("inf")), float("inf")
        return self._composition.epsilon(float(target_delta), self._tolerance)

    def get_delta_interval(self, target_epsilon: float) -> tuple[float, float]:
        """Return the lower and the upper end of delta at an epsilon.

        Args:
            target_epsilon: Privacy loss threshold in nats, >= 0, possibly infinity.

        Raises:
            DomainError: The epsilon is negative.
        """
        if not target_epsilon >= 0.0:
            raise DomainError(f"Expected target_epsilon of at least 0, got {target_epsilon}.")
        if not self._private:
            return 1.0, 1.0
        return self._composition.delta(float(target_epsilon), self._wider)

    def get_true_positive_rates(self, false_positive_rates: Any) -> Any:
        """Return the upper end of the true positive rate of a membership test, at each false positive rate.

        Args:
            false_positive_rates: A rate in [0, 1], or several.
        """
        if np.ndim(false_positive_rates) == 0:
            return self.get_true_positive_rate_interval(float(false_positive_rates))[1]
        rates = np.asarray(false_positive_rates, dtype=float)
        found = [self.get_true_positive_rate_interval(float(rate))[1] for rate in rates.ravel()]
        return np.array(found).reshape(rates.shape)

    def get_true_positive_rate_interval(self, false_positive_rate: float) -> tuple[float, float]:
        """Return both ends of the largest true positive rate of a test with a false positive rate.

        The null hypothesis is the data set without the example, or with it, if this rate is larger.

        Args:
            false_positive_rate: Rate in [0, 1].

        Raises:
            DomainError: The rate is outside [0, 1].
        """
        if not 0.0 <= false_positive_rate <= 1.0:
            raise DomainError(f"Expected a false positive rate in [0, 1], got {false_positive_rate}.")
        if not self._private:
            return 1.0, 1.0
        return self._composition.true_positive_rate(float(false_positive_rate), self._wider)

    def get_gdp_parameter_estimate(self, false_positive_rates: Any) -> float:
        """Return the upper end of mu, at false positive rates from the smallest given one on.

        Without a smallest rate, the mu of a run with sampling is that of the run without sampling.

        Args:
            false_positive_rates: Rates; the smallest one must be in (0, 1/2).
        """
        return self.get_gdp_parameter_interval(float(np.min(false_positive_rates)))[1]

    def get_gdp_parameter_interval(self, smallest_rate: float) -> tuple[float, float]:
        r"""Return both ends of the smallest mu such that a Gaussian mechanism has no smaller power.

        The powers are compared at all false positive rates from a to 1 - a.

        Args:
            smallest_rate: Smallest false positive rate a, in (0, 1/2).

        Raises:
            DomainError: The rate is outside (0, 1/2).
        """
        if not 0.0 < smallest_rate < 0.5:
            raise DomainError(f"Expected a smallest false positive rate in (0, 1/2), got {smallest_rate}.")
        if not self._private:
            return float("inf"), float("inf")
        return self._composition.mu(float(smallest_rate), self._tolerance)

    @property
    def _wider(self) -> float:
        """Tolerance of a probability, which is several times as sensitive as epsilon."""
        return self._tolerance if self._tolerance >= params.WIDTH else SENSITIVE * self._tolerance

    @property
    def _composition(self) -> Composition:
        return Composition.of(self._counts)

    def __repr__(self) -> str:
        """Return the relation, the sensitivity and the composed event."""
        known = f"relation={self._setting.relation.value}, sensitivity={self._setting.sensitivity}"
        return f"{type(self).__name__}({known}, ledger={self.ledger})"
