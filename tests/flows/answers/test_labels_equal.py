"""The epsilon of randomized response that reveals as much as bags, against closed forms in high precision."""

import math

import mpmath
import pytest

from flows.answers.label_text import paragraphs
from flows.answers.labels import (
    Equal,
    LabelComparison,
    contents_of,
    equal_bag_size,
    equal_epsilon,
)
from privcore import Bracket


def equal(prior: str, bag_size: int, mechanism: str = "llp", label_epsilon: float = math.inf) -> Equal:
    comparison = LabelComparison(prior=prior, mechanism=mechanism, label_epsilon=label_epsilon)
    return equal_epsilon(comparison, "advantage", bag_size)


def encloses(found: Equal, truth: mpmath.mpf) -> bool:
    assert found.value is not None
    inside = found.bracket.lower <= found.value <= found.bracket.upper
    return inside and mpmath.mpf(found.bracket.lower) <= truth <= mpmath.mpf(found.bracket.upper)


def shown(prior: str, bag_size: int, mechanism: str, label_epsilon: float) -> str:
    comparison = LabelComparison(prior=prior, mechanism=mechanism, label_epsilon=label_epsilon)
    *_, content = contents_of(comparison, bag_size, None)
    return paragraphs(content)[2]


def of_equal_members(p: float, bag_size: int) -> mpmath.mpf:
    """Return the epsilon for bags of members with the same eta, from the sum over the counts."""
    eta = mpmath.mpf(p)
    others = [
        mpmath.binomial(bag_size - 1, z) * eta**z * (1 - eta) ** (bag_size - 1 - z) for z in range(bag_size)
    ]
    ones, zeros = [mpmath.mpf(0), *others], [*others, mpmath.mpf(0)]
    right = mpmath.fsum(max(eta * one, (1 - eta) * zero) for one, zero in zip(ones, zeros, strict=True))
    wrong = 1 - right  # the probability of a flip is the error of the best guess
    return mpmath.log((1 - wrong) / wrong)


def test_bags_of_two_fair_labels_reveal_as_much_as_epsilon_ln_3() -> None:
    found = equal("0.5", 2)
    with mpmath.workdps(60):
        assert encloses(found, mpmath.log(3))
    assert 0.0 < found.bracket.upper - found.bracket.lower < 1e-12
    assert found.bracket.confidence == 1.0


@pytest.mark.parametrize("epsilon", [1e-10, 1.0, 30.0, 50.0])
@pytest.mark.parametrize("prior", ["0.5", "uniform"])
def test_one_label_with_geometric_noise_has_exactly_the_epsilon_of_its_noise(
    prior: str, epsilon: float
) -> None:
    comparison = LabelComparison(prior=prior, mechanism="llp-geometric", label_epsilon=epsilon)
    for quantity in ("advantage", "log_ratio"):
        found = equal_epsilon(comparison, quantity, 1)
        assert found == Equal(value=epsilon, bracket=Bracket(lower=epsilon, upper=epsilon)), quantity


@pytest.mark.parametrize("mechanism", ["llp-geometric", "llp-laplace"])
@pytest.mark.parametrize("quantity", ["advantage", "log_ratio"])
@pytest.mark.parametrize("prior", ["uniform", "0.4", "0.5", "two-point(0.1,0.6,0.3)"])
def test_one_label_with_noise_reveals_no_more_than_randomized_response_with_its_epsilon(
    prior: str, quantity: str, mechanism: str
) -> None:
    for epsilon in (0.05, 1.0, 3.0):
        found = LabelComparison(prior=prior, mechanism=mechanism, label_epsilon=epsilon)
        exact = equal_bag_size(found, quantity, epsilon)
        assert exact == Equal(value=1, bracket=Bracket(lower=1, upper=1)), epsilon


def test_more_than_one_label_is_needed_only_if_the_noise_has_a_larger_epsilon() -> None:
    found = LabelComparison(prior="0.5", mechanism="llp-geometric", label_epsilon=1.0)
    assert equal_bag_size(found, "advantage", 1.01).value == 1
    assert equal_bag_size(found, "advantage", 0.99).bracket.lower == 2


def test_one_label_without_noise_exceeds_every_epsilon() -> None:
    found = equal("0.3", 1)
    assert found.value == found.bracket.lower == found.bracket.upper == math.inf


@pytest.mark.parametrize(
    ("epsilon", "width"), [(1e-10, 1e-3), (0.05, 1e-11), (1.0, 1e-11), (30.0, 1e-7), (50.0, 1e-3)]
)
def test_one_fair_label_with_laplace_noise_agrees_with_its_closed_form(epsilon: float, width: float) -> None:
    with mpmath.workdps(60):
        found = equal("0.5", 1, "llp-laplace", epsilon)
        flipped = mpmath.exp(-mpmath.mpf(epsilon) / 2)  # twice the probability that the noise exceeds 1/2
        assert encloses(found, mpmath.log((2 - flipped) / flipped))
        assert found.bracket.upper - found.bracket.lower <= width * found.bracket.upper


@pytest.mark.parametrize("mechanism", ["llp-geometric", "llp-laplace"])
def test_noise_too_small_to_be_resolved_leaves_its_own_epsilon_as_the_upper_end(mechanism: str) -> None:
    found = equal("0.5", 2 if mechanism == "llp-geometric" else 1, mechanism, 100.0)
    assert found.value is not None
    assert 0.0 < found.bracket.lower <= found.value <= found.bracket.upper <= 100.0


def test_noise_too_small_to_be_resolved_is_shown_with_both_ends() -> None:
    line = next(line for line in shown("0.5", 1, "llp-laplace", 100.0).splitlines() if "additive" in line)
    lower, upper = line.split("[")[1].rstrip("]").split(", ")
    assert 30.0 < float(lower) < 50.7 < float(upper) == 100.0


@pytest.mark.parametrize("p", [0.5, 0.3, 0.9])
@pytest.mark.parametrize("bag_size", [2, 3, 8, 13])
def test_bags_of_equal_members_agree_with_the_sum_over_their_counts(p: float, bag_size: int) -> None:
    with mpmath.workdps(60):
        found = equal(f"point({p})", bag_size)
        assert encloses(found, of_equal_members(p, bag_size))
        assert found.bracket.upper - found.bracket.lower <= 1e-10 * found.bracket.upper


def test_bags_of_two_with_a_uniform_prior_agree_with_their_closed_form() -> None:
    with mpmath.workdps(60):  # the advantages are 1/6 and tanh(epsilon / 2)^2 / 4
        assert encloses(equal("uniform", 2), 2 * mpmath.atanh(mpmath.sqrt(mpmath.mpf(2) / 3)))


@pytest.mark.parametrize(("prior", "bag_size"), [("0.3", 4), ("two-point(0.1,0.6,0.3)", 4), ("uniform", 3)])
def test_both_ends_are_proved_by_the_bounds_of_both_mechanisms(prior: str, bag_size: int) -> None:
    comparison = LabelComparison(prior=prior)
    ends = equal_epsilon(comparison, "advantage", bag_size).bracket
    bags = comparison.bags("advantage", bag_size).bracket
    assert comparison.response("advantage", ends.lower).bracket.upper <= bags.lower
    assert comparison.response("advantage", ends.upper).bracket.lower >= bags.upper


def test_bags_that_change_no_guess_need_no_epsilon() -> None:
    found = equal("0.3", 2, "llp-geometric", 0.1)
    assert found.value == found.bracket.lower == found.bracket.upper == 0.0


@pytest.mark.thorough
def test_a_simulated_advantage_gives_an_epsilon_with_its_confidence() -> None:
    found = equal("uniform", 24)
    assert found.value is not None
    assert 0.0 < found.bracket.lower < found.value < found.bracket.upper < 1.0
    assert found.bracket.confidence == 0.999
