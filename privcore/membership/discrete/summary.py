"""Bounds from numbers about the distribution of a record: values, largest atom, entropies, diversity."""

import math
from collections.abc import Callable
from typing import get_args

import numpy as np

from privcore.answer import Answer
from privcore.distributions.record import Atoms
from privcore.distributions.record_finite import FiniteRecord
from privcore.membership.discrete.deviation import largest_constant
from privcore.membership.discrete.summary_problems import (
    MembershipSummaryAdvantage,
    Summary,
    SummaryProblem,
)
from privcore.membership.discrete.worst_case import worst_advantage
from privcore.membership.params import RECORDS
from privcore.method import Cost, Direction, Method
from privcore.numerics.least_count import least_count
from privcore.numerics.rounding import CLOSED_FORM, probability_at_most
from privcore.papers import AUBINAIS
from privcore.published import published


def of_values(problem: SummaryProblem) -> float:
    r"""Return the largest diversity of K values, $\sqrt{K - 1}$ (Lemma 23)."""
    return math.sqrt(problem.values - 1.0)


def of_largest_atom(problem: SummaryProblem) -> float:
    r"""Return the largest diversity of K values if one value has at least the probability d (Lemma 24).

    For $d \ge 1 / K$ it is $\sqrt{d (1 - d)} + \sqrt{(1 - d)(K - 2 + d)}$, which falls in d.
    """
    d, k = problem.largest_atom, problem.values
    if d * k <= 1.0:
        return of_values(problem)
    return math.sqrt(d * (1.0 - d)) + math.sqrt((1.0 - d) * max(0.0, k - 2.0 + d))


def of_gini_simpson(problem: SummaryProblem) -> float:
    r"""Return $\sqrt{K G}$, an upper bound of the diversity (equation 24)."""
    return math.sqrt(problem.values * problem.gini_simpson)


def of_entropy(problem: SummaryProblem) -> float:
    r"""Return $\sqrt{K (1 - e^{-H})}$, an upper bound of the diversity (proof of equation 25)."""
    return math.sqrt(problem.values * -math.expm1(-problem.entropy))


def of_diversity(problem: SummaryProblem) -> float:
    """Return the given diversity."""
    return problem.diversity


_BOUNDS = {
    "number of values": of_values,
    "largest atom": of_largest_atom,
    "Gini-Simpson index": of_gini_simpson,
    "entropy": of_entropy,
    "diversity": of_diversity,
}


def _row(
    name: str, field: str, states: str, diversity: Callable[[SummaryProblem], float], place: str
) -> type[Method]:
    """Return the method that takes an upper bound of the diversity from a field."""
    return published(
        name,
        get_args(Summary),
        Direction.UPPER,
        states,
        lambda problem: problem.from_diversity(diversity(problem)),
        reference=f"{AUBINAIS}, {place}; Corollary 15 for C / (2 sqrt n)",
        unless=lambda p: f"The question has no limit of {field}." if field not in p.identity() else None,
        slack=CLOSED_FORM,
        detail=lambda problem: f"C at most {diversity(problem):.6g}",
    )


MembershipValues = _row(
    "membership.values", "values", "K values have at most C = sqrt(K - 1).", of_values, "Lemma 23"
)
MembershipLargest = _row(
    "membership.largest",
    "largest_atom",
    "C is largest if the other values are equally likely.",
    of_largest_atom,
    "Lemma 24",
)
MembershipGini = _row(
    "membership.gini",
    "gini_simpson",
    "C is at most sqrt(K G), as the root is concave.",
    of_gini_simpson,
    "equation 24",
)
MembershipEntropy = _row(
    "membership.entropy",
    "entropy",
    "G is at most 1 - e^-H, so C is at most sqrt(K G).",
    of_entropy,
    "equation 25",
)
MembershipCauchy = _row(
    "membership.cauchy",
    "diversity",
    "C / (2 sqrt n) from C alone, so (C / (2 eps))^2 records.",
    of_diversity,
    "Table 1",
)


class MembershipSummary(Method[Summary]):
    r"""The sharp constant and the smallest bound of C; below, one frequent and m - 1 equally likely values.

    $\Delta^*_n \le U_n C / \sqrt n$ with $U_n \le 1/2$, and $\Delta^*_n \le \Delta^*_1 = G$, the Gini-Simpson
    index. At the lower end a distribution has the given properties, and its advantage is exact.
    """

    name = "membership.summary"
    problems = get_args(Summary)
    direction = Direction.ENCLOSURE
    reference = (
        f"{AUBINAIS}, Lemmas 23 and 24, equations 23 to 25; the sharp constant and lower ends are ours"
    )

    def cost(self, problem: Summary) -> Cost:
        return Cost(seconds=0.1 if isinstance(problem, MembershipSummaryAdvantage) else 1.0, bytes=1e6)

    def answer(self, problem: Summary, seed: int) -> Answer:
        by, c = min(((name, of(problem)) for name, of in _BOUNDS.items()), key=lambda pair: pair[1])
        laws = _distributions(problem)
        target = 1.0 if isinstance(problem, MembershipSummaryAdvantage) else problem.target_advantage

        def ends(records: int) -> tuple[float, float]:
            return _least(laws, records, target), _most(problem, c, records)

        if isinstance(problem, MembershipSummaryAdvantage):
            lower, upper = ends(problem.records)
        else:
            lower, upper = least_count(ends, target, RECORDS.upper)
        return Answer.enclosure(lower, upper, detail=f"C at most {c:.6g} by the {by}")


def largest_gini_simpson(problem: SummaryProblem) -> float:
    """Return an upper bound of the Gini-Simpson index, which is the advantage with one record."""
    d, k = problem.largest_atom, problem.values
    of_atom = 1.0 - 1.0 / k
    if d * k > 1.0:
        of_atom = (1.0 - d) * (1.0 + d - (1.0 - d) / max(1.0, k - 1.0))
    return min(of_atom, problem.gini_simpson, -math.expm1(-problem.entropy))


def _most(problem: SummaryProblem, c: float, records: int) -> float:
    bound = min(largest_gini_simpson(problem), largest_constant(records) * c / math.sqrt(records))
    return probability_at_most(bound, CLOSED_FORM)


def _least(laws: tuple[FiniteRecord, ...], records: int, enough: float) -> float:
    """Return the largest advantage of these distributions, or the first one above `enough`."""
    found = 0.0
    for law in laws:
        found = max(found, worst_advantage(law, records, 1.0)[0])
        if found > enough:
            break
    return found


def _distributions(problem: SummaryProblem) -> tuple[FiniteRecord, ...]:
    """Return distributions with the properties, each with another number of equally likely values."""
    most = problem.values
    sizes = {2, 3, most, *(2**k for k in range(1, 40))}
    if problem.largest_atom > 0.0:
        sizes.add(int(1.0 / problem.largest_atom))
    return tuple(_distribution(problem, size) for size in sorted(sizes) if 2 <= size <= most)


def _distribution(problem: SummaryProblem, size: int) -> FiniteRecord:
    """Return the distribution with the least frequent value a that has the properties."""
    low, high = max(1.0 / size, min(1.0, problem.largest_atom * (1.0 + CLOSED_FORM))), 1.0
    if _has_properties(problem, low, size):
        high = low
    for _ in range(60 if low < high else 0):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _has_properties(problem, middle, size) else (middle, high)
    rest = (1.0 - high) / (size - 1.0)
    p = np.array([high, rest]) if rest > 0.0 else np.array([high])
    number = np.array([1.0, size - 1.0])[: p.size]
    return FiniteRecord("one value and equally likely ones", Atoms(p=p, q=1.0 - p, number=number))


def _has_properties(problem: SummaryProblem, a: float, size: int) -> bool:
    """Return whether one value of probability a and size - 1 equally likely ones have the properties."""
    others = 1.0 - a
    if others == 0.0:
        return True
    b = others / (size - 1.0)
    gini = a * others + others * (1.0 - b)
    entropy = -a * math.log(a) - others * math.log(b)
    diversity = math.sqrt(a * others) + math.sqrt(others * (size - 1.0 - others))
    given = (problem.gini_simpson, problem.entropy, problem.diversity)
    return all(x * (1.0 + CLOSED_FORM) <= y for x, y in zip((gini, entropy, diversity), given, strict=True))
