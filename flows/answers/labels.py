"""Bags of labels and randomized response: their quantities, and when both reveal the same."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from flows.answers.label_quantity import CONFIDENCE, MOST_BAG_SIZE, PROBLEMS, Quantity, read, read_proof
from flows.spec.words import checked
from privcore import (
    Answer,
    Bracket,
    DomainError,
    Point,
    Problem,
    evaluate,
    find,
    find_problem,
)


@dataclass(frozen=True, kw_only=True)
class LabelComparison:
    """A prior, with the quantities that are compared over it.

    Attributes:
        prior: Prior, as in the fields of problems.
        mechanism: Mechanism with bags: `llp`, `llp-geometric` or `llp-laplace`.
        label_epsilon: Epsilon of its noise; infinity for `llp`.
        level: Level of the quantile of the multiplicative advantage.
        draw: Draw of the bags: `with-replacement` or `partition`; None is that of a question.
        report: Called with a description of each computation, for a status line.
    """

    prior: str
    mechanism: str = "llp"
    label_epsilon: float = math.inf
    level: float = 0.98
    draw: str | None = None
    report: Callable[[str], None] = lambda _: None
    known: dict[tuple[Problem, float], Quantity] = field(default_factory=dict, compare=False)

    @cached_property
    def evaluated(self) -> Callable[[Point], Answer]:
        """Evaluation that keeps the answers, which the search reads twice."""
        return cache(evaluate)

    def problem(self, quantity: str, **mechanism: Any) -> Problem:
        """Return the problem about a quantity of a mechanism with its parameters."""
        level = {"level": self.level} if quantity == "log_ratio" else {}
        return find_problem(PROBLEMS[quantity]).asked({"prior": self.prior} | level | mechanism)

    def bags(self, quantity: str, bag_size: int) -> Quantity:
        """Return a quantity of bags of this size."""
        return self.endless(quantity, bag_size) or self.reading(self.of_bags(quantity, bag_size))

    def endless(self, quantity: str, bag_size: int) -> Quantity | None:
        """Return the infinite quantile of bags that reveal a large enough share of the labels, or None."""
        if quantity == "log_ratio":
            certain = self.bags("infinite", bag_size).bracket
            if certain.confidence == 1.0 and certain.lower > 1.0 - self.level:
                return Quantity(bracket=Bracket(lower=math.inf, upper=math.inf), value=math.inf)
        return None

    def of_bags(self, quantity: str, bag_size: int) -> Problem:
        """Return the problem about a quantity of bags of this size."""
        draw = {} if self.draw is None else {"draw": self.draw}
        return self.problem(
            quantity, mechanism=self.mechanism, bag_size=bag_size, label_epsilon=self.label_epsilon, **draw
        )

    @cached_property
    def drawn(self) -> str:
        """The draw of the bags, also if no draw was stated."""
        return str(self.of_bags("infinite", 1).as_fields()["draw"])

    @cached_property
    def largest_bag_size(self) -> int:
        """Largest bag size of a search: that of a partition is at most the number of rows."""
        return bisect_left(range(1, MOST_BAG_SIZE + 1), True, key=self._too_large)

    def _too_large(self, bag_size: int) -> bool:
        """Return whether bags of this size are larger than the file."""
        try:
            self.of_bags("infinite", bag_size)
        except DomainError:
            return True
        return False

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
            self.known[problem, confidence] = read(problem, self.evaluated, confidence)
        return self.known[problem, confidence]

    def proved(self, quantity: str, bag_size: int, enough: Callable[[Bracket], bool]) -> Quantity | None:
        """Return a quantity of bags from proofs, or None if they do not meet a condition."""
        if (endless := self.endless(quantity, bag_size)) and enough(endless.bracket):
            return endless
        return read_proof(self.of_bags(quantity, bag_size), enough, self.evaluated)


_OF_TRIAL = 1.0 - (1.0 - CONFIDENCE) / (2 * MOST_BAG_SIZE.bit_length())
"""Confidence of each simulation of a search: it tries at most 13 powers of two and 11 sizes between them."""
_ONE_BY_ONE = 30.0
"""Estimated seconds, several times the real ones, for computing a quantile for one size after another."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-300, 700.0
_CLOSE = 1e-12
"""Relative distance of the epsilons at which a search ends."""
_ALONE = ("llp", "llp-geometric")
"""Mechanisms that are randomized response, with the epsilon of their noise, if a bag has one label."""


@dataclass(frozen=True, kw_only=True)
class Equal:
    """The parameter at which one mechanism reveals as much as another.

    Attributes:
        value: From the best values: the least bag size that reveals no more, or the epsilon. It is infinite
            if even a label without noise reveals no more, and None if no bag size is found.
        bracket: Below its lower end, bags reveal more, or randomized response reveals less; at its upper end,
            the reverse, and from there on for advantages. At an epsilon that is an end, bounds of both
            mechanisms prove which one reveals at least as much. Both ends hold together with its confidence.
    """

    value: float | None
    bracket: Bracket

    def as_content(self) -> dict[str, Any]:
        """Return it for JSON."""
        lower, upper = self.bracket.lower, self.bracket.upper
        return {"value": self.value, "lower": lower, "upper": upper, "confidence": self.bracket.confidence}


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Bag sizes that are compared with randomized response in one quantity.

    Attributes:
        comparison: The prior and the mechanism with bags.
        quantity: `advantage` or `log_ratio`.
        target: The quantity of randomized response.
        trials: The quantities of bags that were tried, by their size.
    """

    comparison: LabelComparison
    quantity: str
    target: Quantity
    trials: dict[int, Quantity] = field(default_factory=dict)

    def more(self, bracket: Bracket) -> bool:
        """Return whether bags with this bracket reveal more for certain."""
        return bracket.lower > self.target.bracket.upper

    def no_more(self, bracket: Bracket) -> bool:
        """Return whether bags with this bracket reveal no more for certain."""
        return bracket.upper <= self.target.bracket.lower

    def proved(self, bag_size: int) -> Quantity | None:
        """Return the quantity of bags from proofs if they decide, or None."""
        return self.comparison.proved(
            self.quantity, bag_size, lambda bracket: self.more(bracket) or self.no_more(bracket)
        )

    def enough(self, bag_size: int) -> bool:
        """Try a bag size, and return whether its best value is no more than that of randomized response."""
        problem = self.comparison.of_bags(self.quantity, bag_size)
        trial = self.proved(bag_size) or self.comparison.reading(problem, _OF_TRIAL)
        self.trials[bag_size] = trial
        return trial.value <= self.target.value

    def passed(self, bag_size: int) -> bool:
        """Return whether proofs show that larger bags reveal more, so that this size needs no simulation."""
        if self.quantity != "advantage" or self.proved(bag_size):
            return False
        for size in (2 * bag_size, 4 * bag_size):
            trial = self.proved(size) if size <= self.comparison.largest_bag_size else None
            if trial is not None and self.more(trial.bracket):
                self.trials[size] = trial
                return True
        return False

    def bisect(self) -> int | None:
        """Return the bag size at which doubling and bisection end, or None if no tried size is enough."""
        low, high = 0, 1
        while self.passed(high) or not self.enough(high):
            if high == self.comparison.largest_bag_size:
                return None
            low, high = high, min(2 * high, self.comparison.largest_bag_size)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.enough(middle) else (middle, high)
        return high

    def least_sure(self) -> float:
        """Return the least tried size that reveals no more; infinity if there is none."""
        return min(
            (size for size, trial in self.trials.items() if self.no_more(trial.bracket)), default=math.inf
        )

    def largest_short(self) -> int:
        """Return the largest tried size that reveals more, or 0."""
        return max((size for size, trial in self.trials.items() if self.more(trial.bracket)), default=0)

    def first_open(self) -> int:
        """Return the least size that is not proved to reveal more, trying one size after another."""
        low, end = 0, int(min(self.least_sure(), self.comparison.largest_bag_size + 1))
        high = end
        while high - low > 1:  # the share of labels that are revealed for certain is proved to fall
            middle = (low + high) // 2
            low, high = (middle, high) if self.comparison.endless(self.quantity, middle) else (low, middle)
        method, seconds = find("labels.composition")(), 0.0
        for size in range(low + 1, end):
            problem = self.comparison.of_bags(self.quantity, size)
            seconds += math.inf if method.applies(problem) else method.cost(problem).seconds
            trial = self.proved(size) if seconds <= _ONE_BY_ONE else None
            if trial is None:
                return size
            self.trials[size] = trial
            if self.no_more(trial.bracket):
                return size
        return end


def equal_bag_size(comparison: LabelComparison, quantity: str, epsilon: float) -> Equal:
    """Return the least bag size that reveals no more than randomized response.

    The advantage is proved to fall with the bag size. The quantile can rise again: bags of 148 labels with
    eta 0.05 reveal less than randomized response with epsilon 1, and bags of 178 reveal more. So its lower
    end needs all smaller sizes: up to some size the quantile is infinite, and from there it is computed for
    one size after another, if proofs take seconds. One label is enough if its noise has at most this epsilon,
    as a post-processing of randomized response (`labels.dominated`). All simulations of the search hold
    together with the confidence of its result, by the union bound.
    """
    if comparison.label_epsilon <= epsilon:  # rounding would decide where both reveal the same
        return Equal(value=1, bracket=Bracket(lower=1, upper=1))
    search = _Search(comparison=comparison, quantity=quantity, target=comparison.response(quantity, epsilon))
    value: float | None = search.bisect()
    lower = search.largest_short() + 1 if quantity == "advantage" else search.first_open()
    upper = search.least_sure()
    simulated = any(trial.bracket.confidence < 1.0 for trial in search.trials.values())
    bracket = Bracket(lower=lower, upper=upper, confidence=CONFIDENCE if simulated else 1.0)
    return Equal(value=upper if lower == upper else value, bracket=bracket)


def equal_epsilon(comparison: LabelComparison, quantity: str, bag_size: int) -> Equal:
    """Return the epsilon at which randomized response reveals as much as bags of this size.

    If the bags reveal nothing, it is 0, although a larger epsilon may reveal nothing either.
    """
    bags = comparison.bags(quantity, bag_size)
    if bags.bracket.upper <= 0.0:
        return Equal(value=0.0, bracket=replace(bags.bracket, lower=0.0, upper=0.0))
    if bag_size == 1 and comparison.mechanism in _ALONE:
        exact = comparison.label_epsilon
        return Equal(value=exact, bracket=Bracket(lower=exact, upper=exact))
    if quantity == "log_ratio":  # the ratio of randomized response is always epsilon
        return Equal(value=bags.value, bracket=bags.bracket)
    return _epsilon(comparison, quantity, bags)


def _epsilon(comparison: LabelComparison, quantity: str, bags: Quantity) -> Equal:
    """Return the epsilon at which randomized response reveals a quantity of bags.

    The epsilon of the noise is an upper end, since bags with noise are a post-processing of randomized
    response with this epsilon (`labels.dominated`).
    """
    below, above = bags.bracket.lower, bags.bracket.upper
    response = cache(partial(_response, comparison, quantity))
    lower = _edge(lambda epsilon: response(epsilon).bracket.upper > below)[0] if below > 0.0 else 0.0
    upper = min(_edge(lambda epsilon: response(epsilon).bracket.lower >= above)[1], comparison.label_epsilon)
    low, high = _edge(lambda epsilon: response(epsilon).value >= bags.value)
    value = low if math.isfinite(high) else high
    lower = min(lower, upper)  # they cross only if a simulation missed
    bracket = replace(bags.bracket, lower=lower, upper=upper)
    return Equal(value=min(max(value, lower), upper), bracket=bracket)


def _response(comparison: LabelComparison, quantity: str, epsilon: float) -> Quantity:
    """Return a quantity of randomized response without a report of it."""
    return read(comparison.problem(quantity, mechanism="rr", label_epsilon=epsilon), comparison.evaluated)


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


_EQUATED = ("advantage", "log_ratio")
ROWS = ("advantage", "accuracy", "log_ratio", "infinite")
"""Quantities of the table."""


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
        "draw": comparison.drawn,
        "largest_bag_size": comparison.largest_bag_size,
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
        content["equal_epsilon"] = {q: equal_epsilon(comparison, q, bag_size).as_content() for q in _EQUATED}
        yield content
    if epsilon is not None:
        content["equal_bag_size"] = {q: equal_bag_size(comparison, q, epsilon).as_content() for q in _EQUATED}
        yield content


def compared(
    *,
    prior: object,
    bag_size: object,
    versus_rr: object,
    mechanism: object,
    label_epsilon: object,
    level: object,
    draw: object,
) -> tuple[LabelComparison, int | None, float | None]:
    """Return a comparison, the bag size and the epsilon; the arguments are the options of `privsweep labels`.

    Raises:
        DomainError: An option is missing or outside its domain.
    """
    domain = partial(checked, "label-ratio-quantile")
    if bag_size is None and versus_rr is None:
        raise DomainError("Expected --bag-size, --versus-rr, or both.")
    comparison = LabelComparison(
        prior=str(domain("prior", prior)),
        mechanism=str(domain("mechanism", mechanism)),
        label_epsilon=float(domain("label_epsilon", label_epsilon)),
        level=float(domain("level", level)),
        draw=None if draw is None else str(domain("draw", draw)),
    )
    if comparison.mechanism not in ("llp", "llp-geometric", "llp-laplace"):
        raise DomainError(
            f"Expected --mechanism in {{llp, llp-geometric, llp-laplace}}, got {comparison.mechanism}."
        )
    k = None if bag_size is None else int(domain("bag_size", bag_size))
    epsilon = None if versus_rr is None else float(domain("label_epsilon", versus_rr))
    if epsilon == float("inf"):
        raise DomainError("Expected a finite --versus-rr, got inf.")
    if epsilon == 0.0:
        raise DomainError(
            "Expected --versus-rr > 0, got 0: randomized response at 0 reveals nothing, and bags do."
        )
    return comparison, k, epsilon
