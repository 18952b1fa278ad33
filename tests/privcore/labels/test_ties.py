"""Priors of few values, for which an output may be as likely for both labels: rounding decides nothing."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privcore import Answer, Point, evaluate, find, find_problem
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.sums.poisson_binomial import pmf
from privcore.labels.sums.rows import quick_ends

pytestmark = pytest.mark.sampled(2)

Bag = tuple[Fraction, ...]
NONE = Fraction(0)


def answer(method: str, problem: str, **fields: object) -> Answer:
    asked = find_problem(problem).from_fields({"mechanism": "llp", **fields})
    found = evaluate(Point(problem=asked, method=find(method)()))
    assert found.ok, found
    return found


def sums(etas: Bag) -> list[Fraction]:
    """Return the distribution of the sum of labels."""
    law = [Fraction(1)]
    for eta in etas:
        law = [a * (1 - eta) + b * eta for a, b in zip([*law, NONE], [NONE, *law], strict=True)]
    return law


def advantage(eta: Fraction, others: Bag) -> Fraction:
    """Return the advantage on a member, from the sum of all labels."""
    law = sums(others)
    pairs = list(zip([NONE, *law], [*law, NONE], strict=True))
    sign = 1 if 2 * eta <= 1 else -1
    gains = (max(NONE, sign * (eta * one - (1 - eta) * zero)) for one, zero in pairs)
    return sum(gains, NONE)


def mean_advantage(bag: Bag) -> Fraction:
    each = [advantage(bag[i], bag[:i] + bag[i + 1 :]) for i in range(len(bag))]
    return sum(each, NONE) / len(bag)


def tail(values: dict[Fraction, Fraction], bag_size: int, bags: int, threshold: float) -> float:
    """Return the probability that the mean advantage over the bags exceeds the threshold."""
    law: dict[Fraction, Fraction] = {}
    for drawn in itertools.product(values, repeat=bag_size * bags):
        parts = [drawn[i : i + bag_size] for i in range(0, len(drawn), bag_size)]
        mean = sum(map(mean_advantage, parts), NONE) / bags
        law[mean] = law.get(mean, NONE) + math.prod(values[eta] for eta in drawn)
    return float(sum(weight for mean, weight in law.items() if mean > Fraction(threshold)))


@pytest.mark.parametrize(
    ("prior", "values", "bag_size", "bags", "threshold"),
    [
        ("point(0.1)", {0.1: 1.0}, 1, 3, 0.1),
        ("point(0.3)", {0.3: 1.0}, 3, 1, 0.09),
        ("point(0.1)", {0.1: 1.0}, 5, 1, 0.0019000000000000002),
        ("two-point(0.1,0.3,0.01)", {0.1: 0.99, 0.3: 0.01}, 1, 3, 0.1),
        ("two-point(0.2,0.4,0.25)", {0.2: 0.75, 0.4: 0.25}, 2, 2, 0.12),
    ],
)
def test_a_mean_advantage_at_the_threshold_is_above_it_or_not(
    prior: str, values: dict[float, float], bag_size: int, bags: int, threshold: float
) -> None:
    truth = tail({Fraction(x): Fraction(w) for x, w in values.items()}, bag_size, bags, threshold)
    fields: dict[str, Any] = {"prior": prior, "bag_size": bag_size, "bags": bags, "threshold": threshold}
    found = answer("labels.sampling", "label-advantage-tail", **fields)
    assert found.lower <= truth <= found.upper
    apart = answer("labels.sampling", "label-advantage-tail", **fields | {"threshold": threshold * 1.001})
    assert apart.upper - apart.lower < 0.06, "away from a tie it is narrow"


@pytest.mark.parametrize("mechanism", ["llp", "llp-geometric", "llp-laplace", "rr"])
@pytest.mark.parametrize("prior", ["point(0.3)", "point(0.7)"])
def test_bounds_of_mean_advantages_enclose_those_of_composition(mechanism: str, prior: str) -> None:
    """The tail of a constant is 0 or 1; the threshold where it falls is known from another method."""
    privacy = {} if mechanism == "llp" else {"label_epsilon": 1.5}
    one = {"prior": prior, "bag_size": 1 if mechanism == "rr" else 4, "mechanism": mechanism, **privacy}
    method = "labels.response" if mechanism == "rr" else "labels.composition"
    mean = answer(method, "label-advantage", **one)
    for share, certain in ((1.0 - 1e-9, 1.0), (1.0 + 1e-9, 0.0)):
        threshold = (mean.lower if certain else mean.upper) * share
        found = answer("labels.sampling", "label-advantage-tail", **one, bags=2, threshold=threshold)
        assert found.lower <= certain <= found.upper
        assert found.upper - found.lower < 0.01


@pytest.mark.parametrize(
    ("fields", "truth"),
    [
        ({"prior": "point(0.5)", "bag_size": 3, "log_ratio": 0.6931471805599453}, 1.0),
        ({"prior": "point(0.4037940514894367)", "bag_size": 3, "log_ratio": 3.144453977476068e-09}, 1.0),
        (
            {
                "mechanism": "llp-geometric",
                "prior": "two-point(0.2,0.5,0.5)",
                "bag_size": 1,
                "label_epsilon": 0.7,
                "log_ratio": 0.6999999999999998,
            },
            1.0,
        ),
        ({"prior": "point(0.5)", "bag_size": 3, "log_ratio": 0.6931471805599455}, 0.25),
    ],
)
def test_a_ratio_at_the_threshold_is_above_it_or_not(fields: dict[str, Any], truth: float) -> None:
    """The ratios are ln 2 and infinity, far above 3e-9, and the label epsilon itself."""
    found = answer("labels.sampling", "label-ratio-tail", **fields)
    assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("bag_size", [2, 4, 5, 8])
@pytest.mark.parametrize("p", [0.3, 1e-3, 1e-7, 2.579078851427355e-12, 0.9999999999999997, 2.3e-104])
def test_an_advantage_with_outputs_as_likely_for_both_labels_is_enclosed(p: float, bag_size: int) -> None:
    """In a bag of equal members, a sum of half of their number leaves both labels equally likely."""
    eta = Fraction(p)
    truth = advantage(eta, (eta,) * (bag_size - 1))
    prior = f"point({p!r})"
    mean = answer("labels.sampling", "label-advantage", prior=prior, bag_size=bag_size)
    at = answer("labels.sampling", "label-advantage-at", prior=prior, bag_size=bag_size, eta=p)
    for found in (mean, at):
        assert Fraction(found.lower) <= truth <= Fraction(found.upper)
        assert found.upper <= found.lower * (1.0 + 1e-6) + 1e-12


@pytest.mark.parametrize("mechanism", ["llp", "llp-geometric"])
def test_bounds_of_many_values_enclose_exact_sums_at_ties(mechanism: str) -> None:
    rng = np.random.default_rng(7)
    values = np.sort(
        np.concatenate([rng.uniform(size=90), [0.25, 0.5, 0.75], 10.0 ** -rng.uniform(3, 9, 30)])
    )
    law = FinitePrior("many", values, np.full(values.size, 1.0 / values.size))
    others = np.array(
        [[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    )  # counts are as likely as eta is 1/4, 1/2, 3/4
    assert np.array_equal(others[0], pmf(np.array([0.5])))
    low, high = quick_ends(others, mechanism, math.inf, law)
    for row, least, most in zip(others, low, high, strict=True):
        q = [Fraction(x) for x in row]
        pairs = list(zip([NONE, *q], [*q, NONE], strict=True))
        truth = NONE
        for value in values:
            eta = Fraction(float(value))
            sign = 1 if 2 * eta <= 1 else -1
            gains = (max(NONE, sign * (eta * one - (1 - eta) * zero)) for one, zero in pairs)
            truth += Fraction(1, values.size) * sum(gains, NONE)
        assert Fraction(float(least)) <= truth <= Fraction(float(most))
        assert most <= least * (1.0 + 1e-11)
