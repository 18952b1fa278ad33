"""A comparison of bags of labels with randomized response: both advantages, and when they are equal."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from flows.answers.label_quantity import CONFIDENCE, Quantity, read, read_proof
from privcore import Answer, Bracket, Point, Problem, evaluate, find_problem

MOST_BAG_SIZE = 4096
"""Largest bag size of the search."""
_OF_TRIAL = 1.0 - (1.0 - CONFIDENCE) / (2 * MOST_BAG_SIZE.bit_length())
"""Confidence of each simulation of a search: it tries at most 13 powers of two and 11 sizes between them."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-300, 700.0
_CLOSE = 1e-12
"""Relative distance of the epsilons at which a search ends."""
_ALONE = ("llp", "llp-geometric")
"""Mechanisms that are randomized response, with the epsilon of their noise, if a bag has one label."""
_EQUATED = ("advantage", "log_ratio")
ROWS = ("advantage", "accuracy", "log_ratio", "infinite")
"""Quantities of the table."""


@dataclass(frozen=True, kw_only=True)
class Equal:
    """The parameter at which one mechanism reveals as much as another.

    Attributes:
        value: From the best values: the least bag size that reveals no more, or the epsilon. It is infinite
            if even a label without noise reveals no more, and None if no bag size is found.
        bracket: Below its lower end, bags reveal more, or randomized response reveals less; from its upper
            end on, the reverse. At an epsilon that is an end, bounds of both mechanisms prove which one
            reveals at least as much. Both ends hold together with its confidence.
    """

    value: float | None
    bracket: Bracket

    def as_content(self) -> dict[str, Any]:
        """Return it for JSON."""
        lower, upper = self.bracket.lower, self.bracket.upper
        return {"value": self.value, "lower": lower, "upper": upper, "confidence": self.bracket.confidence}


@dataclass(frozen=True, kw_only=True)
class LabelComparison:
    """A prior, with the quantities that are compared over it.

    Attributes:
        prior: Prior, as in the fields of problems.
        mechanism: Mechanism with bags: `llp`, `llp-geometric` or `llp-laplace`.
        label_epsilon: Epsilon of its noise; infinity for `llp`.
        level: Level of the quantile of the multiplicative advantage.
        report: Called with a description of each computation, for a status line.
    """

    prior: str
    mechanism: str = "llp"
    label_epsilon: float = math.inf
    level: float = 0.98
    report: Callable[[str], None] = lambda _: None
    known: dict[tuple[Problem, float], Quantity] = field(default_factory=dict, compare=False)

    @cached_property
    def _evaluated(self) -> Callable[[Point], Answer]:
        """Evaluation that keeps the answers, which the search reads twice."""
        return cache(evaluate)

    @cached_property
    def _names(self) -> dict[str, dict[str, Any]]:
        return {
            "advantage": {"name": "label-advantage"},
            "accuracy": {"name": "label-attack-accuracy"},
            "log_ratio": {"name": "label-ratio-quantile", "level": self.level},
            "infinite": {"name": "label-ratio-infinite"},
        }

    def problem(self, quantity: str, **mechanism: Any) -> Problem:
        """Return the problem about a quantity of a mechanism with its parameters."""
        fields = dict(self._names[quantity])
        return find_problem(fields.pop("name")).from_fields({"prior": self.prior} | fields | mechanism)

    def bags(self, quantity: str, bag_size: int) -> Quantity:
        """Return a quantity of bags of this size."""
        return self._endless(quantity, bag_size) or self.reading(self._of_bags(quantity, bag_size))

    def _endless(self, quantity: str, bag_size: int) -> Quantity | None:
        """Return the infinite quantile of bags that reveal a large enough share of the labels, or None."""
        if quantity == "log_ratio":
            certain = self.bags("infinite", bag_size).bracket
            if certain.confidence == 1.0 and certain.lower > 1.0 - self.level:
                return Quantity(bracket=Bracket(lower=math.inf, upper=math.inf), value=math.inf)
        return None

    def _of_bags(self, quantity: str, bag_size: int) -> Problem:
        return self.problem(
            quantity, mechanism=self.mechanism, bag_size=bag_size, label_epsilon=self.label_epsilon
        )

    def response(self, quantity: str, epsilon: float) -> Quantity:
        """Return a quantity of randomized response."""
        return self.reading(self.problem(quantity, mechanism="rr", label_epsilon=epsilon))

    def blind(self) -> Quantity:
        """Return the accuracy of the best guess without any release."""
        return self.reading(self.problem("accuracy", mechanism="none"))

    def reading(self, problem: Problem, confidence: float = CONFIDENCE) -> Quantity:
        """Return the quantity of a problem; each problem is computed once for each confidence."""
        if (problem, confidence) not in self.known:
            fields = problem.as_fields()
            self.report(f"{problem.name} {fields['mechanism']} bags of {fields['bag_size']}")
            self.known[problem, confidence] = read(problem, self._evaluated, confidence)
        return self.known[problem, confidence]

    def equal_bag_size(self, quantity: str, epsilon: float) -> Equal:
        """Return the least bag size that reveals no more than randomized response.

        The advantage is proved to fall in the bag size; the quantile is assumed to. One label is enough if
        its noise has at most this epsilon, as a post-processing of randomized response (`labels.dominated`).
        All simulations of the search hold together with the confidence of its result, by the union bound.
        """
        if self.label_epsilon <= epsilon:  # rounding would decide where both reveal the same
            return Equal(value=1, bracket=Bracket(lower=1, upper=1))
        target = self.response(quantity, epsilon)
        most, least = target.bracket.upper, target.bracket.lower
        trials: dict[int, Quantity] = {}

        def decides(bracket: Bracket) -> bool:
            return bracket.lower > most or bracket.upper <= least

        def enough(bag_size: int) -> bool:
            proved = self._proved(quantity, bag_size, decides)
            trials[bag_size] = proved or self.reading(self._of_bags(quantity, bag_size), _OF_TRIAL)
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
        sure = [k for k, trial in trials.items() if trial.bracket.upper <= least]
        short = [k for k, trial in trials.items() if trial.bracket.lower > most]
        bracket = Bracket(
            lower=max(short, default=0) + 1,
            upper=min(sure, default=math.inf),
            confidence=CONFIDENCE if any(t.bracket.confidence < 1.0 for t in trials.values()) else 1.0,
        )
        return Equal(value=high or None, bracket=bracket)

    def _proved(self, quantity: str, bag_size: int, enough: Callable[[Bracket], bool]) -> Quantity | None:
        """Return a quantity of bags from proofs, or None if they do not meet a condition."""
        if (endless := self._endless(quantity, bag_size)) and enough(endless.bracket):
            return endless
        return read_proof(self._of_bags(quantity, bag_size), enough, self._evaluated)

    def equal_epsilon(self, quantity: str, bag_size: int) -> Equal:
        """Return the epsilon at which randomized response reveals as much as bags of this size.

        If the bags reveal nothing, it is 0, although a larger epsilon may reveal nothing either.
        """
        bags = self.bags(quantity, bag_size)
        if bags.bracket.upper <= 0.0:
            return Equal(value=0.0, bracket=replace(bags.bracket, lower=0.0, upper=0.0))
        if bag_size == 1 and self.mechanism in _ALONE:
            exact = self.label_epsilon
            return Equal(value=exact, bracket=Bracket(lower=exact, upper=exact))
        if quantity == "log_ratio":  # the ratio of randomized response is always epsilon
            return Equal(value=bags.value, bracket=bags.bracket)
        return self._epsilon(quantity, bags)

    def _epsilon(self, quantity: str, bags: Quantity) -> Equal:
        """Return the epsilon at which randomized response reveals a quantity of bags.

        The epsilon of the noise is an upper end, since bags with noise are a post-processing of randomized
        response with this epsilon (`labels.dominated`).
        """
        below, above = bags.bracket.lower, bags.bracket.upper
        response = cache(partial(self._response, quantity))
        lower = _edge(lambda epsilon: response(epsilon).bracket.upper > below)[0] if below > 0.0 else 0.0
        upper = min(_edge(lambda epsilon: response(epsilon).bracket.lower >= above)[1], self.label_epsilon)
        low, high = _edge(lambda epsilon: response(epsilon).value >= bags.value)
        value = low if math.isfinite(high) else high
        lower = min(lower, upper)  # they cross only if a simulation missed
        bracket = replace(bags.bracket, lower=lower, upper=upper)
        return Equal(value=min(max(value, lower), upper), bracket=bracket)

    def _response(self, quantity: str, epsilon: float) -> Quantity:
        """Return a quantity of randomized response without a report of it."""
        return read(self.problem(quantity, mechanism="rr", label_epsilon=epsilon), self._evaluated)


def _edge(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return two close epsilons such that a condition holds at the second one, but not at the first one.

    The first one is 0 if the condition holds at the least epsilon, and the second one is infinite if it does
    not hold at the largest epsilon.
    """
    low, high = _LEAST_EPSILON, _MOST_EPSILON
    if not holds(high):
        return high, math.inf
    if holds(low):
        return 0.0, low
    while high - low > _CLOSE * high:
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def contents_of(
    comparison: LabelComparison, bag_size: int | None, epsilon: float | None
) -> Iterator[dict[str, Any]]:
    """Yield the comparison of bags of this size with randomized response at this epsilon, for JSON.

    The same dictionary is yielded again with each part, since the searches take most of the time.

    Args:
        comparison: The prior and the mechanism with bags.
        bag_size: Examples in a bag; None leaves bags out.
        epsilon: Epsilon of the randomized response; None leaves it out.
    """
    content: dict[str, Any] = {
        "prior": comparison.prior,
        "mechanism": comparison.mechanism,
        "label_epsilon": comparison.label_epsilon,
        "level": comparison.level,
        "bag_size": bag_size,
        "rr_epsilon": epsilon,
        "assumed": comparison.problem("accuracy", mechanism="none").assumption(),
        "blind_accuracy": comparison.blind().as_content(),
    }
    if bag_size is not None:
        content["bags"] = {q: comparison.bags(q, bag_size).as_content() for q in ROWS}
    if epsilon is not None:
        content["rr"] = {q: comparison.response(q, epsilon).as_content() for q in ROWS}
    yield content
    if bag_size is not None:
        content["equal_epsilon"] = {q: comparison.equal_epsilon(q, bag_size).as_content() for q in _EQUATED}
        yield content
    if epsilon is not None:
        content["equal_bag_size"] = {q: comparison.equal_bag_size(q, epsilon).as_content() for q in _EQUATED}
        yield content
