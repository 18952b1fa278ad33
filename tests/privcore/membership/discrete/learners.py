"""Questions and enumerated learners for the tests of discrete records."""

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcore import Answer, Point, evaluate, find, find_problem
from privcore.distributions.record_notation import law
from privcore.membership.discrete.worst_case import worst_advantage

Array = NDArray[np.float64]
Counts = tuple[int, ...]


def ask(name: str, method: str = "membership.exact", **fields: Any) -> Answer:
    """Return the answer of a method."""
    problem = find_problem(name).from_fields(fields)
    return evaluate(Point(problem=problem, method=find(method)()))


def advantage(text: str, records: int, odds: float = 1.0) -> float:
    """Return the middle of the exact advantage, which must be narrow.

    If a threshold rounds to all records, the advantage is known only to be of the size of a rounding error.
    """
    low, high = worst_advantage(law(text), records, odds)
    assert high - low <= 1e-10 * high + 1e-279 or (low == 0.0 and high < 1e-13)
    return 0.5 * (low + high)


def written(weights: Sequence[float]) -> str:
    """Return the distribution with these atoms in the grammar of the field `law`."""
    return f"atoms({','.join(map(repr, weights))})"


@dataclass(frozen=True)
class Records:
    """The multisets of n records of a distribution.

    Attributes:
        counts: All counts of the values.
        weights: Probabilities of the counts, shape (states,).
        members: Joint probability of the counts and of the value of a random training record, (states, K).
        law: Probabilities of the values, shape (K,).
    """

    counts: list[Counts]
    weights: Array
    members: Array
    law: Array

    @classmethod
    def of(cls, law: Sequence[float], records: int) -> "Records":
        p = np.array(law)
        counts = [c for c in itertools.product(range(records + 1), repeat=len(law)) if sum(c) == records]
        orders = [math.factorial(records) / math.prod(map(math.factorial, c)) for c in counts]
        weights = np.array(orders) * np.prod(p ** np.array(counts), axis=1)
        return cls(counts, weights, weights[:, None] * np.array(counts) / records, p)

    def advantage(self, released: Sequence[int] | NDArray[np.int64], odds: float = 1.0) -> float:
        """Return the advantage of the best attack on a learner that releases this number for each state."""
        size = max(released) + 1
        member, weight = np.zeros((size, self.law.size)), np.zeros(size)
        np.add.at(member, np.asarray(released), self.members)
        np.add.at(weight, np.asarray(released), self.weights)
        return hockey_stick(member, weight[:, None] * self.law, odds)

    def of_learner(self, learner: Callable[[Counts], Hashable], odds: float = 1.0) -> float:
        """Return the advantage against a function of the counts."""
        numbers: dict[Hashable, int] = {}
        return self.advantage([numbers.setdefault(learner(c), len(numbers)) for c in self.counts], odds)

    def of_channel(self, channel: Array, odds: float) -> float:
        """Return the advantage against a random function of the counts, given as rows of probabilities."""
        weight = self.weights @ channel
        return hockey_stick(channel.T @ self.members, weight[:, None] * self.law, odds)


def hockey_stick(member: Array, fresh: Array, odds: float) -> float:
    """Return the advantage for the joint distributions of a release with a member and with a fresh record."""
    if odds >= 1.0:
        return float(np.maximum(0.0, member - odds * fresh).sum())
    return float(np.maximum(0.0, fresh - member / odds).sum())


def partitions(size: int) -> Iterator[list[int]]:
    """Yield all partitions of `size` states, as the number of the part of each state."""

    def extended(start: list[int], parts: int) -> Iterator[list[int]]:
        if len(start) == size:
            yield start
            return
        for part in range(parts + 1):
            yield from extended([*start, part], max(parts, part + 1))

    yield from extended([], 0)
