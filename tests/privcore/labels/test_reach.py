"""Exact zeros beyond the largest advantage and ratio, and means over several bags, against enumeration."""

import itertools
import math
from fractions import Fraction

import pytest

from privcore import Bracket, Point, Problem, evaluate, find, find_problem, intersect, methods_for
from privcore.labels.bounds.reach import largest_advantage
from privcore.labels.problems import LabelAdvantageAt, LabelAdvantageTail

PRIORS = ("uniform", "beta(2,5)", "logit-normal(0,1)", "point(0.3)", "two-point(0.2,0.7,0.5)")
PRIVATE = ("rr", "llp-geometric", "llp-laplace")


def tail(**fields: float | str) -> LabelAdvantageTail:
    problem = find_problem("label-advantage-tail").from_fields(fields)
    assert isinstance(problem, LabelAdvantageTail)
    return problem


def proved(problem: Problem) -> Bracket:
    """Return the intersection of all proved brackets; simulations take too long here."""
    methods = [method for method in methods_for(problem) if method.name != "labels.sampling"]
    answers = {method.name: evaluate(Point(problem=problem, method=method())) for method in methods}
    return intersect(answer.said_by(name) for name, answer in answers.items() if answer.ok)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("bags", [1, 3])
@pytest.mark.parametrize("mechanism", PRIVATE)
def test_no_advantage_is_above_that_of_randomized_response(mechanism: str, bags: int, prior: str) -> None:
    fields: dict[str, float | str] = {"mechanism": mechanism, "prior": prior, "bags": bags}
    largest = 0.5 - 1.0 / (1.0 + math.e)
    for threshold in (largest + 1e-12, 0.24, 0.5, 0.9):
        found = proved(tail(**fields, label_epsilon=1.0, threshold=threshold))
        assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize("bags", [1, 3])
@pytest.mark.parametrize(
    ("prior", "threshold"), [("uniform", 0.5), ("point(0.3)", 0.3), ("point(0.75)", 0.25)]
)
def test_no_advantage_is_above_that_of_a_label_without_noise(prior: str, threshold: float, bags: int) -> None:
    for size in (1, 4):
        found = proved(tail(mechanism="llp", prior=prior, bag_size=size, threshold=threshold, bags=bags))
        assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("mechanism", PRIVATE)
def test_no_ratio_is_above_epsilon(mechanism: str, prior: str) -> None:
    fields = {"mechanism": mechanism, "prior": prior, "label_epsilon": 1.0}
    for threshold in (1.0, 7.0):
        found = proved(find_problem("label-ratio-tail").from_fields(fields | {"log_ratio": threshold}))
        assert (found.lower, found.upper) == (0.0, 0.0)
    found = proved(find_problem("label-ratio-quantile").from_fields(fields | {"level": 0.9}))
    assert found.upper <= 1.0


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 8.0, 700.0])
@pytest.mark.parametrize("prior", ["uniform", "point(0.5)", "point(0.3)", "point(1e-6)"])
def test_the_largest_advantage_is_attained_by_randomized_response(prior: str, epsilon: float) -> None:
    problem = tail(mechanism="rr", prior=prior, label_epsilon=epsilon, threshold=0.1)
    largest = largest_advantage(problem)
    eta = 0.5 if prior == "uniform" else float(prior[6:-1])
    attained = proved(LabelAdvantageAt(mechanism="rr", prior=prior, label_epsilon=epsilon, eta=eta))
    assert attained.lower <= largest
    assert largest == pytest.approx(attained.upper, rel=1e-9, abs=1e-20)
    if largest > 0.0:
        below = proved(tail(mechanism="rr", prior=prior, label_epsilon=epsilon, threshold=0.99 * largest))
        assert below.lower > 0.0


@pytest.mark.parametrize("method", ["labels.response", "labels.composition"])
@pytest.mark.parametrize("threshold", ["0.04", "0.06", "0.14", "0.16", "0.24", "0.26"])
@pytest.mark.parametrize("bags", [1, 2, 4])
def test_means_over_several_examples_agree_with_enumeration(method: str, threshold: str, bags: int) -> None:
    """Geometric noise in bags of 1 is randomized response; epsilon is ln 3, so labels flip with 1/4."""
    truth = Fraction(0)
    for etas in itertools.product((Fraction(3, 10), Fraction(1, 2)), repeat=bags):
        mean = sum((eta - Fraction(1, 4) for eta in etas), Fraction(0)) / bags
        truth += Fraction(int(mean > Fraction(threshold)), 2**bags)
    problem = tail(
        mechanism="rr" if method == "labels.response" else "llp-geometric",
        prior="two-point(0.3,0.5,0.5)",
        label_epsilon=math.log(3.0),
        threshold=float(threshold),
        bags=bags,
    )
    found = evaluate(Point(problem=problem, method=find(method)()))
    assert found.lower <= truth <= found.upper
    if bags == 1 or threshold in ("0.04", "0.26"):
        assert found.upper - found.lower < 1e-9
    else:
        assert found.lower <= 0.5**bags
        assert found.upper <= 1.0 - 0.4999**bags
