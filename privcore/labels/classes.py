"""Exact advantages for several classes: randomized response, and the class histogram of a bag."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.labels.bag_problems import ClassAdvantage
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

_MOST_HISTOGRAMS = 1e5
_SMALLEST = 2.0**-1074
"""The smallest double: the distance of all doubles that are not normal."""


@dataclass(frozen=True, kw_only=True)
class LabelsClasses(Method[ClassAdvantage]):
    r"""Gain of the best guess of a class by a release: $E[\max_a \eta_a g_a(z)] - \max_a \eta_a$.

    For randomized response the first term is
    $\sum_b \max(e^\varepsilon \eta_b, \max_{a \ne b} \eta_a) / (e^\varepsilon + c - 1)$ over outputs b. For
    histograms the other examples have a Poisson-multinomial distribution, which is computed by adding one
    example after the other. The sum is over the excess of each term over the blind guess, which avoids
    cancellation.
    """

    name = "labels.classes"
    problems = (ClassAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1, for any number of classes"
    version = 2

    def applies(self, problem: ClassAdvantage) -> str | None:
        rows = problem.rows
        if problem.mechanism == "llp" and _histograms(rows) > _MOST_HISTOGRAMS:
            return f"The bag has more than {_MOST_HISTOGRAMS:.0e} histograms of classes."
        return None

    def cost(self, problem: ClassAdvantage) -> Cost:
        rows = problem.rows
        states = min(_MOST_HISTOGRAMS, _histograms(rows)) if problem.mechanism == "llp" else 1.0
        return Cost(seconds=0.001 + 4e-6 * states * len(rows) * len(rows[0]), bytes=1e6 + 1000.0 * states)

    def answer(self, problem: ClassAdvantage, seed: int) -> Answer:
        if problem.mechanism == "none":
            return Answer.enclosure(0.0, 0.0, detail="nothing is released")
        rows = problem.rows
        if problem.mechanism == "rr":
            low, high = _response(rows[0], problem.label_epsilon)
            return Answer.enclosure(low, min(1.0, high), detail="closed form")
        low, high = _histogram(rows)
        return Answer.enclosure(low, min(1.0, high), detail=f"{_histograms(rows)} histograms")


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


def _histogram(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return lower and upper bounds for the histogram of the classes of the bag."""
    classes = range(len(rows[0]))
    lost = 0  # products that are not normal; each has an absolute error of half of the smallest double
    others: dict[tuple[int, ...], float] = {(0,) * len(classes): 1.0}
    for etas in rows[1:]:
        following: dict[tuple[int, ...], float] = {}
        for histogram, probability in others.items():
            for a in classes:
                more = (*histogram[:a], histogram[a] + 1, *histogram[a + 1 :])
                product = probability * etas[a]
                lost += _lost(product, probability, etas[a])
                following[more] = following.get(more, 0.0) + product
        others = following
    joint: dict[tuple[int, ...], list[float]] = {}
    for histogram, probability in others.items():
        for a in classes:
            released = (*histogram[:a], histogram[a] + 1, *histogram[a + 1 :])
            product = probability * rows[0][a]
            lost += _lost(product, probability, rows[0][a])
            joint.setdefault(released, [0.0] * len(classes))[a] = product
    blind = max(classes, key=rows[0].__getitem__)
    error = 16.0 * (len(rows) + len(classes)) * 2.0**-53
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


def _lost(product: float, one: float, other: float) -> bool:
    """Return whether a product of positive numbers is below the normal doubles."""
    return product < sys.float_info.min and one > 0.0 and other > 0.0
