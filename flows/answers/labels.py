"""Randomized response and bags of labels on one footing: what each reveals, and when they reveal as much."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flows.answers.ask import Asked, ask, is_tight
from privcore import LimitError, Method, Problem, find_problem, methods_for

TIGHT = 1e-7
"""Relative width of a bracket from which on no further method is asked."""
MOST_BAG_SIZE = 4096
"""Largest bag that is looked for."""
_MOST_EPSILON = 700.0
_NOTHING = 1e-200
"""Below this, a quantity counts as 0."""
_DRAWN = 2e7
"""Labels that a simulation draws, at most 1,000,000 bags of them."""
SIMULATION, QUADRATURE = "labels.sampling", "labels.gauss"
QUANTITIES = ("advantage", "log_ratio")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is known of one quantity.

    Attributes:
        lower: Lower end.
        upper: Upper end.
        value: Best single value, between the ends.
        confidence: Probability with which the ends hold; 1 is a proof.
    """

    lower: float
    upper: float
    value: float
    confidence: float

    def as_content(self) -> dict[str, float]:
        """Return it for JSON."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "value": self.value,
            "confidence": self.confidence,
        }


@dataclass(frozen=True, kw_only=True)
class Equal:
    """The parameter at which one mechanism reveals as much as another.

    Attributes:
        value: By the best values: the least bag size that reveals no more, or the epsilon; infinite where
            even a label that is released as it is reveals no more, and None where no bag size is found.
        lower: Below it, more is revealed (of bags) or less (of randomized response), by the ends of readings.
        upper: From it on, the reverse.
        confidence: Probability with which each reading holds that these two rest on.
    """

    value: float | None
    lower: float
    upper: float
    confidence: float

    def as_content(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "confidence": self.confidence,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A prior, with the quantities that are compared over it.

    Attributes:
        prior: As problems write it.
        mechanism: With bags: `llp`, `llp-geometric` or `llp-laplace`.
        label_epsilon: Of its noise; infinity for `llp`.
        level: Level of the quantile of the multiplicative advantage.
        report: Told what is being computed, for those who wait.
    """

    prior: str
    mechanism: str = "llp"
    label_epsilon: float = math.inf
    level: float = 0.98
    report: Callable[[str], None] = lambda _: None
    known: dict[Problem, Reading] = field(default_factory=dict, compare=False)

    @cached_property
    def _names(self) -> dict[str, dict[str, Any]]:
        return {
            "advantage": {"name": "label-advantage"},
            "accuracy": {"name": "label-attack-accuracy"},
            "log_ratio": {"name": "label-ratio-quantile", "level": self.level},
            "infinite": {"name": "label-ratio-infinite"},
        }

    def problem(self, quantity: str, **mechanism: Any) -> Problem:
        """Return the question for a quantity of a mechanism with its parameters."""
        fields = dict(self._names[quantity])
        return find_problem(fields.pop("name")).from_fields({"prior": self.prior} | fields | mechanism)

    def bags(self, quantity: str, bag_size: int) -> Reading:
        """Return what is known of a quantity for bags of so many examples."""
        return self.reading(
            self.problem(
                quantity, mechanism=self.mechanism, bag_size=bag_size, label_epsilon=self.label_epsilon
            )
        )

    def response(self, quantity: str, epsilon: float) -> Reading:
        """Return what is known of a quantity for randomized response."""
        return self.reading(self.problem(quantity, mechanism="rr", label_epsilon=epsilon))

    def blind(self) -> Reading:
        """Return how often a guess without any release is right."""
        return self.reading(self.problem("accuracy", mechanism="none"))

    def reading(self, problem: Problem) -> Reading:
        """Return what all methods together say, simulations included; remembered."""
        if problem not in self.known:
            fields = problem.as_fields()
            self.report(f"{problem.name} {fields['mechanism']} bags of {fields['bag_size']}")
            self.known[problem] = read(problem)
        return self.known[problem]

    def equal_bag_size(self, quantity: str, epsilon: float) -> Equal:
        """Return the least bag size that reveals no more than randomized response.

        The advantage falls in the bag size, which is proved; that the quantile does is assumed.
        """
        target = self.response(quantity, epsilon)
        trials: dict[int, Reading] = {}

        def enough(bag_size: int) -> bool:
            trials[bag_size] = self.bags(quantity, bag_size)
            return trials[bag_size].value <= target.value

        high = 1
        while not enough(high):
            if high == MOST_BAG_SIZE:
                high = 0
                break
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        sure = [k for k, reading in trials.items() if reading.upper <= target.lower]
        short = [k for k, reading in trials.items() if reading.lower > target.upper]
        return Equal(
            value=high or None,
            lower=max(short, default=0) + 1,
            upper=min(sure, default=math.inf),
            confidence=min(reading.confidence for reading in trials.values()),
        )

    def equal_epsilon(self, quantity: str, bag_size: int) -> Equal:
        """Return the epsilon at which randomized response reveals as much as bags of so many examples."""
        bags = self.bags(quantity, bag_size)
        if quantity == "log_ratio":  # the ratio of randomized response is always epsilon
            return Equal(value=bags.value, lower=bags.lower, upper=bags.upper, confidence=bags.confidence)
        return Equal(
            value=self._epsilon(quantity, bags.value),
            lower=self._epsilon(quantity, bags.lower),
            upper=self._epsilon(quantity, bags.upper),
            confidence=bags.confidence,
        )

    def _epsilon(self, quantity: str, target: float) -> float:
        """Return where randomized response reaches a target, infinity where it never does."""
        if target < _NOTHING:
            return 0.0
        low, high = 1e-9, _MOST_EPSILON
        if self._response_value(quantity, high) * (1.0 - 1e-12) <= target:
            return math.inf
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._response_value(quantity, middle) >= target else (middle, high)
        return 0.5 * (low + high)

    def _response_value(self, quantity: str, epsilon: float) -> float:
        return read(self.problem(quantity, mechanism="rr", label_epsilon=epsilon)).value


def read(problem: Problem) -> Reading:
    """Return what all methods say of a problem: proofs, cut by the simulation where they are wide apart."""
    asked = ask(problem, list(_methods(problem)), until=lambda asked: _is_proved(asked, TIGHT))
    answers = [(reply.method.name, reply.answer) for reply in asked.replies if reply.answer.ok]
    if not answers:
        fields = problem.as_fields()
        raise LimitError(
            f"No method answers {problem.name} for bags of {fields['bag_size']} within the limits."
        )
    proofs = [answer for _, answer in answers if answer.rigorous]
    drawn = [] if _is_proved(asked, TIGHT) else [answer for _, answer in answers if not answer.rigorous]
    lower = max(answer.lower for answer in (*proofs, *drawn))
    upper = min([problem.largest, *(answer.upper for answer in (*proofs, *drawn))])
    if lower > upper:  # the simulation missed, as it may once in a thousand times: proofs count alone
        drawn, lower, upper = [], asked.lower, asked.upper
    values = {name: answer.value for name, answer in answers if answer.value is not None}
    value = values.get(QUADRATURE, values.get(SIMULATION, _middle(lower, upper)))
    return Reading(
        lower=lower,
        upper=upper,
        value=min(max(value, lower), upper),
        confidence=1.0 - math.fsum(1.0 - answer.confidence for answer in drawn),
    )


def _is_proved(asked: Asked, width: float) -> bool:
    narrow = is_tight(asked, width) or asked.lower == asked.upper or asked.upper < _NOTHING
    return asked.ok and asked.confidence == 1.0 and narrow


def _methods(problem: Problem) -> Iterator[Method]:
    """Yield the methods that apply; the simulation draws more bags where they are small."""
    fields = problem.as_fields()
    for method, reason in methods_for(problem).items():
        if reason is None and method.name == SIMULATION:
            most = 1e5 if problem.name == "label-ratio-quantile" else 1e6
            samples = max(1e4, min(most, _DRAWN / float(fields["bag_size"]) ** 1.5))
            yield method.from_knobs({"samples": int(samples)})
        elif reason is None:
            yield method()


def _middle(lower: float, upper: float) -> float:
    return upper if math.isinf(upper) else 0.5 * (lower + upper)
