"""Gauss quadrature over the other etas, for bags of up to five examples with a continuous prior."""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
import scipy

from privcore.answer import Answer
from privcore.distributions.prior_density import Beta, Uniform
from privcore.labels import geometric
from privcore.labels.compositions import multisets
from privcore.labels.poisson_binomial import Array, relative_error
from privcore.labels.problems import SINGLE, LabelAdvantage, LabelAttackAccuracy, LabelProblem
from privcore.labels.response import accuracy
from privcore.labels.rows import discrete, likelihoods, overturned_ends
from privcore.method import Cost, Direction, Method
from privcore.numerics.sums import dot

_NODES = {1: 64, 2: 48, 3: 32, 4: 24}
"""Number of nodes, by the number of other examples."""


Answered = LabelAdvantage | LabelAttackAccuracy


@dataclass(frozen=True, kw_only=True)
class LabelsGauss(Method[Answered]):
    r"""Integrate the advantage over the etas of the others with tensor products of Gauss quadratures.

    Over a uniform prior the advantage is $\frac18 \sum_z (g_1 - g_0)^2 / (g_1 + g_0)$, and both likelihoods
    are linear in each other eta. As a function of this eta every term is linear plus $\rho^2 / (g_1 + g_0)$,
    whose even derivatives are positive: so Gauss-Legendre quadrature is a lower bound and Gauss-Lobatto
    quadrature an upper bound, in each variable and therefore in all. Over a Beta prior the value is computed
    by Gauss-Jacobi quadrature, whose error is estimated with fewer nodes but not proved, so its lower and
    upper bounds are trivial.
    """

    name = "labels.gauss"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = "Davis and Rabinowitz (1984), Methods of Numerical Integration, Section 2.7"

    def applies(self, problem: Answered) -> str | None:
        if problem.mechanism in SINGLE or not discrete(problem.mechanism):
            return "Gauss quadrature is for mechanisms that release a whole number: llp and llp-geometric."
        if not isinstance(problem.distribution, Uniform | Beta):
            return "Gauss quadrature needs a uniform or a Beta prior."
        if not 2 <= problem.bag_size <= 1 + max(_NODES):
            return f"Gauss quadrature is for bags of 2 to {1 + max(_NODES)} examples."
        return None

    def cost(self, problem: Answered) -> Cost:
        others = problem.bag_size - 1
        nodes = math.comb(_NODES.get(others, 1) + others, max(others, 0)) if others <= max(_NODES) else 1
        per_output = 1e-7 if isinstance(problem.distribution, Uniform) else 1e-5
        return Cost(seconds=0.02 + nodes * (problem.bag_size + 1) * per_output, bytes=2e6 + 2e4 * nodes)

    def answer(self, problem: Answered, seed: int) -> Answer:
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
        one, zero = geometric.released(some.laws, problem.label_epsilon)
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
