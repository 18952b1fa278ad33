"""Bound by overlaps: against all draws if they can be listed, and against published values."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import hypergeom

from privcore import Answer, Point, Problem, evaluate, find, methods_for
from privcore.allocation.moments import SPREAD_ORDERS
from privcore.allocation.published.dong import MOST_SUMMED, log_overlap, overlap_moments
from tests.privcore.draws import problem


def answer(question: Problem) -> Answer:
    return evaluate(Point(problem=question, method=find("allocation.dong")()))


def exact_log_moment(sigma: float, steps: int, k: int, order: int) -> float:
    """Return the log-moment of k-of-t allocation by listing all tuples of draws; the first may be fixed."""
    draws = list(itertools.combinations(range(steps), k))
    total = 0.0
    for rest in itertools.product(draws, repeat=order - 1):
        counts = np.bincount(np.concatenate([draws[0], *rest]), minlength=steps)
        total += math.exp(float((counts * (counts - 1)).sum()) / (2.0 * sigma * sigma))
    return math.log(total / len(draws) ** (order - 1))


@pytest.mark.parametrize("sigma", [0.7, 1.5, 6.0])
@pytest.mark.parametrize(("steps", "k"), [(4, 2), (4, 1), (5, 3), (4, 3), (3, 3)])
def test_no_moment_exceeds_its_bound_where_all_draws_are_listed(sigma: float, steps: int, k: int) -> None:
    bounds = overlap_moments(sigma, steps, k)
    for order in (2, 3, 4, 5):
        exact = exact_log_moment(sigma, steps, k, order)
        bound = bounds[order - 2]
        assert SPREAD_ORDERS[order - 2] == order
        assert bound >= exact * (1.0 - 1e-12)
        if order == 2 or k == steps:
            assert bound <= exact * (1.0 + 1e-10)


@pytest.mark.parametrize(("t", "k"), [(1, 1), (10, 3), (10, 8), (1000, 500), (5000, 2000), (10**6, 40)])
def test_the_overlap_is_hypergeometric(t: int, k: int) -> None:
    for x in (1e-6, 0.01, 1.0):
        i = np.arange(max(0, 2 * k - t), k + 1)
        exact = math.log1p(float(hypergeom.pmf(i, t, k, k) @ np.expm1(np.minimum(i * x, 500.0))))
        bound = log_overlap(t, k, np.array([x]))[0]
        assert exact * (1.0 - 1e-6) <= bound
        if i.max() * x < 500.0:
            assert bound <= exact * (1.0 + 1e-6)


@pytest.mark.parametrize(("t", "k"), [(10_000, 3000), (10_000, 7000), (10**9, 5 * 10**8)])
def test_many_participations_are_bounded_by_a_binomial_overlap(t: int, k: int) -> None:
    assert min(k, t - k) > MOST_SUMMED
    for x in (1e-9, 1e-3, 0.3):
        bound = log_overlap(t, k, np.array([x]))[0]
        assert k * k / t * x <= bound <= k * x
        if t == 10_000:
            i = np.arange(max(0, 2 * k - t), k + 1)
            terms = hypergeom.logpmf(i, t, k, k) + i * x
            assert float(np.logaddexp.reduce(terms)) <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("sigma", "steps", "k", "epochs", "delta", "printed"),
    [
        (1.0, 1000, 1, 1, 1e-8, 1.699900944841137),
        (0.5, 10_000, 1, 1, 1e-6, 3.9923209094759553),
        (2.0, 1000, 1, 1, 1e-10, 0.6057532013159671),
        (0.3, 100, 1, 1, 1e-4, 14.33146543098068),
        (1.0, 1000, 10, 1, 1e-8, 4.7824858119969615),
        (0.5, 100, 10, 1, 1e-6, 27.48176796189567),
        (1.0, 10_000, 1, 10, 1e-8, 1.747738386295783),
    ],
)
def test_values_of_another_implementation_are_met_from_above(
    sigma: float, steps: int, k: int, epochs: int, delta: float, printed: float
) -> None:
    """Values of random-allocation 1.0.5, which has the same relevant orders for these problems."""
    fields = {"sigma": sigma, "steps": steps, "participations": k, "epochs": epochs, "delta": delta}
    upper = answer(problem("allocation-epsilon", **fields, adjacency="remove")).upper
    assert printed * (1.0 - 1e-12) <= upper <= printed * (1.0 + 1e-10)


def test_many_participations_in_few_steps_are_bounded_better_than_by_reduction() -> None:
    """Figure 9 of arXiv:2502.08202v3: sigma 0.6, 2^10 steps, delta 1e-6; the two bounds cross."""
    better = []
    for k in (1, 2, 64):
        fields = {"sigma": 0.6, "steps": 1024, "participations": k, "delta": 1e-6, "adjacency": "remove"}
        question = problem("allocation-epsilon", **fields)
        direct = evaluate(Point(problem=question, method=find("allocation.direct")()))
        better.append(answer(question).upper < direct.upper)
    assert better == [False, False, True]


@pytest.mark.parametrize("adjacency", ["add", "add-remove"])
def test_other_directions_are_refused(adjacency: str) -> None:
    question = problem("allocation-epsilon", sigma=1.0, steps=100, delta=1e-6, adjacency=adjacency)
    assert "remove only" in (methods_for(question)[find("allocation.dong")] or "")


def test_all_steps_chosen_are_the_gaussian_mechanism_at_every_order() -> None:
    bounds = overlap_moments(2.0, 9, 9)
    exact = SPREAD_ORDERS * (SPREAD_ORDERS - 1.0) * 9.0 / 8.0
    np.testing.assert_allclose(bounds, exact, rtol=1e-13)
    assert np.all(bounds >= exact)
