"""A comparison of bags of labels with randomized response: both advantages, and when they are equal."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from flows.answers.label_quantity import NOTHING, Quantity, read
from flows.printing import plain, rounded_down, rounded_up
from privcore import Bracket, Problem, find_problem

MOST_BAG_SIZE = 4096
"""Largest bag size of the search."""
_MOST_EPSILON = 700.0
_EQUATED = ("advantage", "log_ratio")
_ROWS = ("advantage", "accuracy", "log_ratio", "infinite")
_ASSUMED = "\n(the advantage is proved to fall with the bag size; the quantile is assumed to)"


@dataclass(frozen=True, kw_only=True)
class Equal:
    """The parameter at which one mechanism reveals as much as another.

    Attributes:
        value: From the best values: the least bag size that reveals no more, or the epsilon. It is infinite
            if even a label without noise reveals no more, and None if no bag size is found.
        bracket: Below its lower end, bags reveal more, or randomized response reveals less; from its upper
            end on, the reverse. Each quantity behind the ends holds with its confidence.
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
    known: dict[Problem, Quantity] = field(default_factory=dict, compare=False)

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
        return self.reading(
            self.problem(
                quantity, mechanism=self.mechanism, bag_size=bag_size, label_epsilon=self.label_epsilon
            )
        )

    def response(self, quantity: str, epsilon: float) -> Quantity:
        """Return a quantity of randomized response."""
        return self.reading(self.problem(quantity, mechanism="rr", label_epsilon=epsilon))

    def blind(self) -> Quantity:
        """Return the accuracy of the best guess without any release."""
        return self.reading(self.problem("accuracy", mechanism="none"))

    def reading(self, problem: Problem) -> Quantity:
        """Return the quantity of a problem; each problem is computed once."""
        if problem not in self.known:
            fields = problem.as_fields()
            self.report(f"{problem.name} {fields['mechanism']} bags of {fields['bag_size']}")
            self.known[problem] = read(problem)
        return self.known[problem]

    def equal_bag_size(self, quantity: str, epsilon: float) -> Equal:
        """Return the least bag size that reveals no more than randomized response.

        The advantage is proved to fall in the bag size; the quantile is assumed to.
        """
        target = self.response(quantity, epsilon)
        trials: dict[int, Quantity] = {}

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
        most, least = target.bracket.upper, target.bracket.lower
        sure = [k for k, trial in trials.items() if trial.bracket.upper <= least]
        short = [k for k, trial in trials.items() if trial.bracket.lower > most]
        bracket = Bracket(
            lower=max(short, default=0) + 1,
            upper=min(sure, default=math.inf),
            confidence=min(trial.bracket.confidence for trial in trials.values()),
        )
        return Equal(value=high or None, bracket=bracket)

    def equal_epsilon(self, quantity: str, bag_size: int) -> Equal:
        """Return the epsilon at which randomized response reveals as much as bags of this size."""
        bags = self.bags(quantity, bag_size)
        if quantity == "log_ratio":  # the ratio of randomized response is always epsilon
            return Equal(value=bags.value, bracket=bags.bracket)
        bracket = replace(
            bags.bracket,
            lower=self._epsilon(quantity, bags.bracket.lower),
            upper=self._epsilon(quantity, bags.bracket.upper),
        )
        return Equal(value=self._epsilon(quantity, bags.value), bracket=bracket)

    def _epsilon(self, quantity: str, target: float) -> float:
        """Return the epsilon at which randomized response reaches a target, or infinity."""
        if target < NOTHING:
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


def content_of(comparison: LabelComparison, bag_size: int | None, epsilon: float | None) -> dict[str, Any]:
    """Return the comparison of bags of this size with randomized response at this epsilon, for JSON.

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
        content["bags"] = {q: comparison.bags(q, bag_size).as_content() for q in _ROWS}
        content["equal_epsilon"] = {q: comparison.equal_epsilon(q, bag_size).as_content() for q in _EQUATED}
    if epsilon is not None:
        content["rr"] = {q: comparison.response(q, epsilon).as_content() for q in _ROWS}
        content["equal_bag_size"] = {q: comparison.equal_bag_size(q, epsilon).as_content() for q in _EQUATED}
    return content


def text_of(content: Mapping[str, Any]) -> str:
    """Return the comparison as text, with ends rounded outwards."""
    columns = {}
    if "bags" in content:
        noise = "" if math.isinf(content["label_epsilon"]) else f", epsilon = {content['label_epsilon']:g}"
        columns[f"{content['mechanism']}, bags of {content['bag_size']}{noise}"] = content["bags"]
    if "rr" in content:
        columns[f"rr, epsilon = {content['rr_epsilon']:g}"] = content["rr"]
    quantile = f"{content['level']:g} quantile of |I|"
    names = {
        "advantage": "additive advantage",
        "accuracy": "accuracy of the best guess",
        "log_ratio": f"{quantile}, nats",
        "infinite": "labels revealed for certain",
    }
    lines = [["", *columns]]
    for row in _ROWS:
        lines.append([names[row], *(_reading(readings[row]) for readings in columns.values())])
        if row == "log_ratio":
            bits = [_reading(_in_bits(readings[row])) for readings in columns.values()]
            lines.append([f"{quantile}, bits", *bits])
    blind = _reading(content["blind_accuracy"])
    parts = [f"prior {content['prior']}; a blind guess is right with probability {blind}", _aligned(lines)]
    if content["assumed"]:
        parts.append(f"assumed: {content['assumed']}")
    if "equal_epsilon" in content:
        title = f"randomized response that reveals as much as bags of {content['bag_size']}: epsilon"
        parts.append(_equal(title, content["equal_epsilon"], quantile))
    if "equal_bag_size" in content:
        title = (
            f"smallest bags that reveal no more than rr with epsilon = {content['rr_epsilon']:g}: bag size"
        )
        parts.append(_equal(title, content["equal_bag_size"], quantile) + _ASSUMED)
    parts.append(
        "|I| is the absolute log-likelihood ratio of the two labels; its bits are log2 of the ratio."
    )
    return "\n\n".join(parts)


def _equal(title: str, equals: Mapping[str, Any], quantile: str) -> str:
    names = {"advantage": "in additive advantage", "log_ratio": f"in the {quantile}"}
    none = f"none up to {MOST_BAG_SIZE}"
    lines = [[names[q], none if equal["value"] is None else _reading(equal)] for q, equal in equals.items()]
    return f"{title}\n{_aligned(lines)}"


def _reading(reading: Mapping[str, float]) -> str:
    """Return an exact value, or the value with its ends."""
    low, high = rounded_down(reading["lower"]), rounded_up(reading["upper"])
    close = reading["upper"] == reading["lower"] or (
        math.isfinite(reading["upper"]) and reading["upper"] - reading["lower"] <= 1e-6 * reading["upper"]
    )
    sure = reading["confidence"] == 1.0
    if close:
        return f"{reading['value']:.6g}" + ("" if sure else f" [{100.0 * reading['confidence']:.4g} %]")
    doubt = "" if sure else f", {100.0 * reading['confidence']:.4g} %"
    return f"{reading['value']:.4g} [{low}, {high}{doubt}]"


def _in_bits(reading: Mapping[str, float]) -> dict[str, float]:
    return {name: x if name == "confidence" else x / math.log(2.0) for name, x in reading.items()}


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    return plain(lines[0], lines[1:], [False] * len(lines[0]), "")
