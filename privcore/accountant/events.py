"""Trees of DpEvents, as counted private steps; or the part that is not supported, with the reason."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from privcore.accountant.mechanisms import (
    MECHANISMS,
    MOST_STEPS,
    NotPrivateError,
    RefusedEventError,
    StepSetting,
    integer_of,
    name_of,
)
from privcore.accountant.steps import PrivateStep


@dataclass
class Steps:
    """Counted steps of events.

    Attributes:
        setting: Assumptions about neighbouring data sets.
        counts: The steps found so far.
        private: Whether all events found so far are private.
    """

    setting: StepSetting
    counts: Counter[PrivateStep] = field(default_factory=Counter)
    private: bool = True

    def add(self, event: Any, count: int) -> None:
        """Add the steps of an event that happens `count` times.

        Raises:
            RefusedEventError: The event, or an event in it, is not supported.
        """
        name = name_of(event)
        if count > MOST_STEPS:
            raise RefusedEventError(
                event, f"An event may happen at most {MOST_STEPS} times, not {count} times."
            )
        if name == "SelfComposedDpEvent":
            self.add(event.event, integer_of(event, "count", 0, MOST_STEPS) * count)
        elif name == "ComposedDpEvent":
            for each in event.events:
                self.add(each, count)
        elif name == "NonPrivateDpEvent":
            self.private = self.private and count == 0
        elif name in MECHANISMS:
            self._add_step(event, name, count)
        elif name != "NoOpDpEvent":
            raise RefusedEventError(event, _REFUSED.get(name, f"`{name}` is not supported."))

    def _add_step(self, event: Any, name: str, count: int) -> None:
        """Add the step of an event that releases an output; a step without noise is not private."""
        try:
            step = MECHANISMS[name](event, self.setting)
        except NotPrivateError:
            self.private = self.private and count == 0
        else:
            if step is not None and count > 0:
                self.counts[step] += count


_REFUSED = {
    "DiscreteGaussianDpEvent": "`DiscreteGaussianDpEvent` has no known dominating distribution.",
    "RepeatAndSelectDpEvent": "`RepeatAndSelectDpEvent` has no known dominating distribution.",
    "SingleEpochTreeAggregationDpEvent": "Tree aggregation has no known dominating distribution.",
    "UnsupportedDpEvent": "`UnsupportedDpEvent` describes no mechanism.",
    "ZCDpEvent": "`ZCDpEvent` bounds Renyi divergences only, which give no likelihood-ratio distribution.",
}
"""Reasons for refusal, by the name of the event."""
