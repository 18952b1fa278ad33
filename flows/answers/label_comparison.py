"""A prior, and the quantities of bags of labels and of randomized response over it."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from flows.answers.label_quantity import CONFIDENCE, Quantity, read, read_proof
from privcore import Answer, Bracket, DomainError, Point, Problem, evaluate, find_problem

MOST_BAG_SIZE = 4096
"""Largest bag size of a search."""
PROBLEMS = {
    "advantage": "label-advantage",
    "accuracy": "label-attack-accuracy",
    "log_ratio": "label-ratio-quantile",
    "infinite": "label-ratio-infinite",
}
"""Quantities, each with the name of its problem."""


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
