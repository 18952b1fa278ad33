"""Priors with two values: one spelling for each distribution, which keeps a small probability."""

import pytest

from privcore import Point, evaluate, find, find_problem, methods_for
from privcore.distributions.prior_finite import FinitePrior
from privcore.distributions.prior_notation import canonical_prior


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("two-point(.7,.05,.75)", "two-point(0.05,0.7,0.25)"),
        ("two-point(1,0.5,0.001)", "two-point(0.5,1,0.999)"),
        ("two-point(1,0.5,1e-12)", "two-point(1,0.5,1e-12)"),
        ("two-point(0.5,1,1e-12)", "two-point(0.5,1,1e-12)"),
        ("two-point(0.7,0.05,1e-300)", "two-point(0.7,0.05,1e-300)"),
    ],
)
def test_the_smaller_value_is_first_unless_rounding_would_lose_the_rarer_one(
    written: str, canonical: str
) -> None:
    assert canonical_prior(written) == canonical
    assert canonical_prior(canonical) == canonical


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-12, 1e-15])
def test_a_rare_value_keeps_its_probability_whichever_comes_first(rare: float) -> None:
    """In a bag of two, eta is 1/2 with a small probability e, else 1: the advantage is e ((1 - e)/2 + e/4).

    A guess gains only if eta is 1/2: the sum then shows the label next to a label that is certain, and
    half as often next to another such label.
    """
    truth = rare * ((1.0 - rare) / 2.0 + rare / 4.0)
    problem = find_problem("label-advantage").from_fields(
        {"mechanism": "llp", "prior": f"two-point(1,0.5,{rare!r})", "bag_size": 2}
    )
    enclosing = [method for method, reason in methods_for(problem).items() if reason is None]
    assert find("labels.composition") in enclosing
    for method in enclosing:
        answer = evaluate(Point(problem=problem, method=method()))
        if answer.rigorous:
            assert answer.lower <= truth * (1 + 1e-12), method.name
            assert answer.upper >= truth * (1 - 1e-12), method.name


def test_the_values_are_in_order_for_every_spelling() -> None:
    law = FinitePrior.two_point(1.0, 0.5, 1e-12)
    assert law.values.tolist() == [0.5, 1.0]
    assert law.weights.tolist() == [1e-12, 1.0 - 1e-12]
