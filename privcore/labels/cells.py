"""Bounds for priors: the other etas are moved to the means of cells, or to their ends."""

import math
from typing import Annotated, get_args

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.distributions.prior import Cells, Prior
from privcore.distributions.prior_density import Beta, Uniform
from privcore.labels import params as label_params
from privcore.labels.bounds.response import accuracy
from privcore.labels.problems import (
    SINGLE,
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAttackAccuracy,
    LabelProblem,
)
from privcore.labels.sums import compositions, noisy_sums
from privcore.labels.sums.compositions import multisets
from privcore.labels.sums.poisson_binomial import Array, relative_error
from privcore.labels.sums.rows import advantage, discrete, likelihoods, overturned_ends
from privcore.method import Cost, Direction, Method
from privcore.numerics.sums import dot, of_groups
from privcore.papers import BUSA_FEKETE

_PRODUCTS = 3e8
BINS = 4096
"""Largest number of bins."""


Answered = LabelAdvantage | LabelAdvantageAt | LabelAttackAccuracy


class LabelsCells(Method[Answered]):
    r"""Replace each other eta by the mean of its prior cell (lower bound) or by the ends of it (upper bound).

    Both likelihoods are linear in the eta of each other member, and the advantage is a sum of positive parts
    of linear functions of them, so it is convex. By Jensen's inequality the means of the cells give a lower
    bound, and the ends of the cells, weighted so that the mean is kept, give an upper bound. Both are sums
    over the compositions of the bag; the eta of the attacked example is not moved. The bounds differ by the
    order of the squared width of the cells.
    """

    name = "labels.cells"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"Jensen's inequality and its converse, for {BUSA_FEKETE}, Lemma A.1"
    version = 2
    shares = ("prior", "bag_size")

    outputs: Annotated[int, label_params.OUTPUTS] = 20_000

    def applies(self, problem: Answered) -> str | None:
        if problem.mechanism in SINGLE:
            return "The mechanism has no bags; labels.response has the closed forms."
        if not discrete(problem.mechanism) and not isinstance(problem, LabelAdvantageAt):
            return "With Laplace noise and a continuous prior the advantage is not a finite sum."
        if problem.distribution.atoms is not None:
            return "The prior has finitely many values; labels.composition is exact."
        if problem.distribution.cells(2) is None:
            return "The means of the prior over intervals have no closed form."
        if self._number(problem) < 2:
            return (
                f"Even two cells of the prior need more than outputs={self.outputs} in bags of "
                f"{problem.bag_size}."
            )
        return None

    def _number(self, problem: LabelProblem) -> int:
        """Return the largest number of cells whose compositions are affordable, or 0."""
        if problem.bag_size == 1:
            return 2
        number, step = 0, 2**14
        while step:
            if self._affordable(number + step + 1, problem.bag_size):
                number += step
            step //= 2
        return number

    def _affordable(self, atoms: int, bag_size: int) -> bool:
        """Return whether the sum over all compositions of the others with `atoms` etas is affordable."""
        few = compositions.number(atoms, bag_size - 1) * (bag_size + 1) <= self.outputs
        return few and (atoms >= bag_size or compositions.work(atoms, bag_size - 1) <= _PRODUCTS)

    def cost(self, problem: Answered) -> Cost:
        if problem.bag_size == 1:
            return Cost(seconds=0.02, bytes=2e6)
        smooth = not isinstance(problem, LabelAdvantageAt)
        return Cost(
            seconds=0.05 + self.outputs * (2e-5 if smooth else 5e-6), bytes=2e7 + 2000.0 * self.outputs
        )

    def answer(self, problem: Answered, seed: int) -> Answer:
        number = self._number(problem)
        cells = problem.distribution.cells(number)
        assert cells is not None
        low = self._sum(problem, *means(cells))[0]
        high = self._sum(problem, *ends(cells))[1]
        if isinstance(problem, LabelAttackAccuracy):
            low, high = accuracy(problem.distribution, (low, high))
        # Both errors are of second order, and the error of the upper bound is twice that of the lower bound.
        low, high = max(0.0, low), min(problem.largest, high)
        return Answer.enclosure(
            low,
            high,
            value=(2.0 * low + high) / 3.0,
            detail=f"{number} cells of the prior",
        )

    def _sum(self, problem: LabelProblem, values: Array, weights: Array) -> tuple[float, float]:
        """Return lower and upper bounds of the advantage if the others have finitely many different etas."""
        law = problem.attacked
        lows, highs = [], []
        others = problem.bag_size - 1
        sums = compositions.multisets if values.size > others else compositions.compositions
        for some in sums(values, weights, others):
            low, high = advantage(some.laws, problem.mechanism, problem.label_epsilon, law)
            lows.append(float(dot(some.weights, low)))
            highs.append(float(dot(some.weights, high)))
        # The weights are probabilities of cells, each with an absolute error of a few roundings.
        error = 2.0 * relative_error(problem.bag_size)
        slack = 1e-14 * values.size * problem.bag_size * law.blind
        return math.fsum(lows) * (1.0 - error) - slack, math.fsum(highs) * (1.0 + error) + slack


def means(cells: Cells) -> tuple[Array, Array]:
    """Return the distribution with every cell moved to its mean."""
    return cells.mean, cells.mass / cells.mass.sum()


def ends(cells: Cells) -> tuple[Array, Array]:
    """Return the distribution with every cell moved to its ends, with the same mean."""
    share = (cells.mean - cells.lower) / (cells.upper - cells.lower)
    values = np.concatenate([cells.lower, cells.upper])
    weights = np.concatenate([cells.mass * (1.0 - share), cells.mass * share])
    distinct, place = np.unique(values, return_inverse=True)
    total = np.bincount(place, weights=weights)
    return distinct, total / total.sum()


def coarser_and_spread(law: Prior) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return values and weights of a coarser and of a spread distribution, for Jensen's inequality."""
    if law.atoms is None:
        cells = law.cells(BINS)
        assert cells is not None
        return means(cells), ends(cells)
    values, weights = law.atoms
    if values.size <= BINS:
        return (values, weights), (values, weights)
    share = np.floor(np.cumsum(weights) / weights.sum() * math.nextafter(BINS - 1, 0.0))
    starts = np.flatnonzero(np.diff(share + (values > 0.5), prepend=-1.0))
    mass = of_groups(weights, starts)
    first, last = values[starts], values[np.append(starts[1:], values.size) - 1]
    mean = np.clip(of_groups(weights * values, starts) / mass, first, last)
    alone = first == last
    cells = Cells(mass=mass, mean=mean, lower=first, upper=np.where(alone, np.nextafter(last, 2.0), last))
    moved, shares = ends(cells)
    return means(cells), (np.minimum(1.0, moved), shares)


def spread(values: Array, weights: Array, nodes: Array) -> Array:
    """Return the weights of nodes to which values are spread such that each keeps its mean."""
    place = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, nodes.size - 2)
    share = np.clip((values - nodes[place]) / (nodes[place + 1] - nodes[place]), 0.0, 1.0)
    total = np.bincount(place, weights * (1.0 - share), nodes.size)
    return np.asarray(total + np.bincount(place + 1, weights * share, nodes.size), dtype=np.float64)


_NODES = {1: 64, 2: 48, 3: 32, 4: 24}
"""Number of nodes, by the number of other examples."""


Integrated = LabelAdvantage | LabelAttackAccuracy


class LabelsGauss(Method[Integrated]):
    r"""Integrate the advantage over the etas of the others with tensor products of Gauss quadratures.

    Over a uniform prior the advantage is $\frac18 \sum_z (g_1 - g_0)^2 / (g_1 + g_0)$, and both likelihoods
    are linear in each other eta. As a function of this eta every term is linear plus $\rho^2 / (g_1 + g_0)$,
    whose even derivatives are positive: so Gauss-Legendre quadrature is a lower bound and Gauss-Lobatto
    quadrature an upper bound, in each variable and therefore in all. Over a Beta prior the value is computed
    by Gauss-Jacobi quadrature, whose error is estimated with fewer nodes but not proved, so its lower and
    upper bounds are trivial.
    """

    name = "labels.gauss"
    problems = get_args(Integrated)
    direction = Direction.ENCLOSURE
    reference = "Davis and Rabinowitz (1984), Methods of Numerical Integration, Section 2.7"

    def applies(self, problem: Integrated) -> str | None:
        if problem.mechanism in SINGLE or not discrete(problem.mechanism):
            return "Gauss quadrature is for mechanisms that release a whole number: llp and llp-geometric."
        if not isinstance(problem.distribution, Uniform | Beta):
            return "Gauss quadrature needs a uniform or a Beta prior."
        if not 2 <= problem.bag_size <= 1 + max(_NODES):
            return f"Gauss quadrature is for bags of 2 to {1 + max(_NODES)} examples."
        return None

    def cost(self, problem: Integrated) -> Cost:
        others = problem.bag_size - 1
        nodes = math.comb(_NODES.get(others, 1) + others, max(others, 0)) if others <= max(_NODES) else 1
        per_output = 1e-7 if isinstance(problem.distribution, Uniform) else 1e-5
        return Cost(seconds=0.02 + nodes * (problem.bag_size + 1) * per_output, bytes=2e6 + 2e4 * nodes)

    def answer(self, problem: Integrated, seed: int) -> Answer:
        n = _NODES[problem.bag_size - 1]
        law = problem.distribution
        blind = accuracy(law, (0.0, 0.0)) if isinstance(problem, LabelAttackAccuracy) else (0.0, 0.0)
        if isinstance(law, Uniform):
            error = 8.0 * relative_error(problem.bag_size) + 1e-13
            low = _ends(problem, *_legendre(n))[0] * (1.0 - error)
            high = _ends(problem, *_lobatto(n))[1] * (1.0 + error)
            detail = f"Gauss-Legendre and Gauss-Lobatto quadrature with {n} nodes"
            return Answer.enclosure(
                blind[0] + low, min(problem.largest, blind[1] + high), value=blind[0] + low, detail=detail
            )
        assert isinstance(law, Beta)
        value = _integral(problem, *_jacobi(n, law))
        coarse = _integral(problem, *_jacobi(3 * n // 4, law))
        return Answer.enclosure(
            blind[0],
            problem.largest,
            value=blind[0] + value,
            detail=f"Gauss-Jacobi quadrature with {n} nodes, {abs(value - coarse):.1e} from fewer nodes",
        )


def _integral(problem: LabelProblem, nodes: Array, weights: Array) -> float:
    """Return the quadrature over all other etas; they are exchangeable, so multisets of nodes suffice."""
    total = 0.0
    for some in multisets(nodes, weights, problem.bag_size - 1):
        one, zero = noisy_sums.released(some.laws, problem.label_epsilon)
        total += float(dot(some.weights, problem.distribution.overturned(one, zero).sum(axis=1)))
    return total


def _ends(problem: LabelProblem, nodes: Array, weights: Array) -> tuple[float, float]:
    """Return the quadratures of lower and upper bounds of the integrand."""
    low, high = 0.0, 0.0
    for some in multisets(nodes, weights, problem.bag_size - 1):
        lows, highs = overturned_ends(problem.distribution, *likelihoods(some.laws, problem.label_epsilon))
        low += float(dot(some.weights, lows.sum(axis=1)))
        high += float(dot(some.weights, highs.sum(axis=1)))
    return low, high


def _legendre(n: int) -> tuple[Array, Array]:
    """Return the Gauss-Legendre rule of n nodes on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (1.0 + nodes), 0.5 * weights


def _lobatto(n: int) -> tuple[Array, Array]:
    """Return the Gauss-Lobatto rule of n nodes on [0, 1], both ends included."""
    inner, _ = scipy.special.roots_jacobi(n - 2, 1.0, 1.0)
    nodes = np.concatenate([[-1.0], inner, [1.0]])
    last = np.polynomial.legendre.legval(nodes, np.eye(n)[n - 1])
    return 0.5 * (1.0 + nodes), 1.0 / (n * (n - 1) * last**2)


def _jacobi(n: int, law: Beta) -> tuple[Array, Array]:
    """Return the Gauss rule of n nodes for a Beta distribution."""
    nodes, weights = scipy.special.roots_jacobi(n, law.b - 1.0, law.a - 1.0)
    return 0.5 * (1.0 + nodes), weights / weights.sum()
