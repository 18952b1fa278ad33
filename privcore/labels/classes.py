"""Exact advantages and ratios for sums of vectors: classes of examples, and several sums of labels."""

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from operator import add
from typing import get_args

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from privcore.answer import Answer
from privcore.labels.bag_problems import ClassAdvantage, ClassRatio, SumsAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

_MOST_SUMS = 1e5
"""Largest number of different sums of a bag."""
_SMALLEST = 2.0**-1074
"""The smallest double: the distance of all doubles that are not normal."""

Vector = tuple[int, ...]
Choices = Sequence[tuple[Vector, float]]
"""Vectors that one example may add to a sum, with their probabilities."""
Answered = ClassAdvantage | ClassRatio


class LabelsClasses(Method[Answered]):
    r"""Gain of the best guess of a class by a release: $E[\max_a \eta_a g_a(z)] - \max_a \eta_a$.

    For randomized response the first term is
    $\sum_b \max(e^\varepsilon \eta_b, \max_{a \ne b} \eta_a) / (e^\varepsilon + c - 1)$ over outputs b. For
    histograms the other examples have a Poisson-multinomial distribution, which is computed by adding one
    example after the other. The sum is over the excess of each term over the blind guess, which avoids
    cancellation. The multiplicative advantage is the logarithm of the ratio of two probabilities of the
    histogram less the class of the first example.
    """

    name = "labels.classes"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1 and Definition 3.6, for any number of classes"
    version = 2

    def applies(self, problem: Answered) -> str | None:
        rows = problem.rows
        if problem.mechanism == "llp" and _histograms(rows) > _MOST_SUMS:
            return f"The bag has more than {_MOST_SUMS:.0e} histograms of classes."
        if isinstance(problem, ClassRatio) and 0.0 in _odds(problem):
            return "The ratio needs two classes with positive probabilities."
        if isinstance(problem, ClassRatio) and problem.mechanism == "llp" and not _is_possible(problem):
            return "The release is impossible under both classes."
        return None

    def cost(self, problem: Answered) -> Cost:
        rows = problem.rows
        classes = float(len(rows[0]))
        states = min(_MOST_SUMS, _histograms(rows)) if problem.mechanism == "llp" else 0.3 * classes
        units = 16.0 * len(rows) * classes**2
        return Cost(seconds=0.001 + 4e-6 * states * len(rows) * classes, bytes=1e6 + 1000.0 * states + units)

    def answer(self, problem: Answered, seed: int) -> Answer:
        if problem.mechanism == "none" or problem.label_epsilon == 0.0:
            return Answer.enclosure(0.0, 0.0, detail="the release is independent of the class")
        if isinstance(problem, ClassRatio):
            return _ratio(problem)
        rows = problem.rows
        if problem.mechanism == "rr":
            low, high = _response(rows[0], problem.label_epsilon)
            return Answer.enclosure(low, min(1.0, high), detail="closed form")
        low, high = _gain_of_sum(_units(rows[0]), [_units(row) for row in rows[1:]])
        return Answer.enclosure(low, min(1.0, high), detail=f"{_histograms(rows)} histograms")


class LabelsSums(Method[SumsAdvantage]):
    r"""Exact joint distribution of several sums of labels, which may overlap or have weights.

    The advantage is $\sum_z (\eta g_1(z) - (1 - \eta) g_0(z))_+$ over the vectors z of the sums, or its
    mirror image. Weights are taken as the decimal numbers that are written.
    """

    name = "labels.sums"
    problems = (SumsAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1, for the vector of all sums"

    def applies(self, problem: SumsAdvantage) -> str | None:
        if _number_of_sums(_weights(problem)) > _MOST_SUMS:
            return f"The bag may have more than {_MOST_SUMS:.0e} different vectors of sums."
        return None

    def cost(self, problem: SumsAdvantage) -> Cost:
        states = min(_MOST_SUMS, _number_of_sums(_weights(problem)))
        return Cost(seconds=0.001 + 4e-6 * states * problem.bag_size, bytes=1e6 + 1000.0 * states)

    def answer(self, problem: SumsAdvantage, seed: int) -> Answer:
        weights, etas = _weights(problem), map(float, problem.bag.split(","))
        examples = [
            [((0,) * len(vector), 1.0 - eta), (vector, eta)]
            for vector, eta in zip(weights, etas, strict=True)
        ]
        first = examples.pop(problem.member - 1)
        low, high = _gain_of_sum(first, examples)
        return Answer.enclosure(
            min(problem.largest, low), min(problem.largest, high), detail=f"member {problem.member}"
        )


def _weights(problem: SumsAdvantage) -> list[Vector]:
    """Return the weights of each example in all sums, as whole numbers of a unit of each sum."""
    rows = [[Fraction(word) for word in row.split(",")] for row in problem.sums.split(";")]
    units = [math.lcm(*(weight.denominator for weight in row)) for row in rows]
    whole = [[int(weight * unit) for weight in row] for row, unit in zip(rows, units, strict=True)]
    return list(zip(*whole, strict=True))


def _number_of_sums(weights: Sequence[Vector]) -> int:
    """Return a bound of the number of different vectors of sums."""
    spans: list[int] = [1 + sum(map(abs, column)) for column in zip(*weights, strict=True)]
    return min(1 << len(weights), math.prod(spans, start=1))


def _odds(problem: ClassRatio) -> tuple[float, float]:
    """Return the probabilities of both classes of the first example."""
    first = problem.rows[0]
    return first[problem.first_class - 1], first[problem.second_class - 1]


def _is_possible(problem: ClassRatio) -> bool:
    """Return whether the bag can have this histogram if the first example has one of both classes.

    It can if and only if the examples can be matched to the classes that were counted.
    """
    can = np.array(problem.rows) > 0.0
    can[0] = False
    can[0, [problem.first_class - 1, problem.second_class - 1]] = True
    places = csr_array(can[:, np.repeat(np.arange(problem.number), problem.counts)])
    return bool((maximum_bipartite_matching(places) >= 0).all())


def _ratio(problem: ClassRatio) -> Answer:
    """Return the absolute logarithm of the ratio of the probabilities of the release under both classes."""
    released, both = problem.counts, (problem.first_class - 1, problem.second_class - 1)
    if problem.mechanism == "rr":
        ratio = problem.label_epsilon if len({released[a] for a in both}) == 2 else 0.0
        return Answer.enclosure(ratio, ratio, detail="epsilon if one of both classes is released")
    sums, lost = _sum_of([_units(row) for row in problem.rows[1:]], problem.number)
    parts = [sums.get((*released[:a], released[a] - 1, *released[a + 1 :]), 0.0) for a in both]
    detail = f"{len(sums)} histograms of the others"
    if not lost and 0.0 in parts:
        return Answer.enclosure(math.inf, math.inf, detail=detail)
    error, slack = _error(problem.bag_size, problem.number), (4 * lost + 4) * _SMALLEST if lost else 0.0
    if min(parts) * (1.0 - error) <= slack:
        return Answer.enclosure(0.0, math.inf, detail=f"{detail}; a probability underflows")
    ratio = abs(math.log(parts[0]) - math.log(parts[1]))
    width = 2.0 * (error + slack / min(parts)) + 4000.0 * 2.0**-52
    return Answer.enclosure(max(0.0, ratio - width), ratio + width, detail=detail)


def _histograms(rows: Sequence[Sequence[float]]) -> int:
    """Return the number of possible histograms of a bag of these examples."""
    return math.comb(len(rows) + len(rows[0]) - 1, len(rows[0]) - 1)


def _gain(joint: Sequence[float], blind: int) -> float:
    """Return the excess of the most likely class over the class that is guessed without the release."""
    return max(joint) - joint[blind]


def _response(etas: Sequence[float], epsilon: float) -> tuple[float, float]:
    """Return lower and upper bounds for randomized response."""
    blind = max(range(len(etas)), key=etas.__getitem__)
    small = math.exp(-epsilon)
    error = 16.0 * len(etas) * 2.0**-53
    ends = []
    for sign in (-1.0, 1.0):
        gains = []
        for b in range(len(etas)):
            joint = [eta * (1.0 if a == b else small) for a, eta in enumerate(etas)]
            joint = [x * (1.0 + (-sign if a == blind else sign) * error) for a, x in enumerate(joint)]
            gains.append(_gain(joint, blind))
        ends.append(math.fsum(gains) / (1.0 + (len(etas) - 1) * small) * (1.0 + sign * error))
    return max(0.0, ends[0]), ends[1]


def _units(etas: Sequence[float]) -> Choices:
    """Return the classes of an example as vectors of counts, with their probabilities."""
    return [(tuple(int(b == a) for b in range(len(etas))), eta) for a, eta in enumerate(etas)]


def _sum_of(examples: Sequence[Choices], size: int) -> tuple[dict[Vector, float], int]:
    """Return the distribution of the sum of independent vectors, and the number of subnormal products."""
    sums: dict[Vector, float] = {(0,) * size: 1.0}
    lost = 0  # products that are not normal; each has an absolute error of half of the smallest double
    for choices in examples:
        following: dict[Vector, float] = {}
        for vector, probability in sums.items():
            for added, eta in choices:
                more = tuple(map(add, vector, added))
                product = probability * eta
                lost += _lost(product, probability, eta)
                following[more] = following.get(more, 0.0) + product
        sums = following
    return sums, lost


def _gain_of_sum(first: Choices, others: Sequence[Choices]) -> tuple[float, float]:
    """Return bounds of the gain about the choice of the first example, from the sum of all vectors."""
    sums, lost = _sum_of(others, len(first[0][0]))
    joint: dict[Vector, list[float]] = {}
    for vector, probability in sums.items():
        for a, (added, eta) in enumerate(first):
            product = probability * eta
            lost += _lost(product, probability, eta)
            joint.setdefault(tuple(map(add, vector, added)), [0.0] * len(first))[a] = product
    blind = max(range(len(first)), key=lambda a: first[a][1])
    error = _error(len(others) + 1, len(first))
    ends = [
        math.fsum(
            _gain([x * (1.0 + (-sign if a == blind else sign) * error) for a, x in enumerate(some)], blind)
            for some in joint.values()
        )
        * (1.0 + sign * error)
        for sign in (-1.0, 1.0)
    ]
    slack = (4 * lost + 4) * _SMALLEST if lost or 0.0 < ends[1] < sys.float_info.min else 0.0
    return max(0.0, ends[0] - slack), ends[1] + slack


def _error(examples: int, choices: int) -> float:
    """Return the relative error of a probability of a sum, which takes a few roundings for each example."""
    return 16.0 * (examples + choices) * 2.0**-53


def _lost(product: float, one: float, other: float) -> bool:
    """Return whether a product of positive numbers is below the normal doubles."""
    return product < sys.float_info.min and one > 0.0 and other > 0.0
