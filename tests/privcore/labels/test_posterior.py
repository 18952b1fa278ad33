"""The posterior of a member of a bag, against exact likelihoods of any magnitude."""

import math
import random

import mpmath
import pytest

from privcore import DomainError, Point, evaluate, find, find_problem
from privcore.problem import Problem

BAG = find("labels.bag")


def asked(etas: list[float], **fields: object) -> Problem:
    bag = ",".join(map(repr, etas))
    return find_problem("label-posterior").from_fields({"bag": bag, **fields})


def exact(etas: list[float], member: int, released: int, epsilon: float) -> mpmath.mpf:
    """The posterior by the distribution of the sum of the other labels, with exponents of any size."""
    mp = mpmath.mp
    law = [mp.mpf(1)]
    for place, eta in enumerate(etas):
        if place != member - 1:
            yes = mp.mpf(eta)
            law = [a * (1 - yes) + b * yes for a, b in zip([*law, 0], [0, *law], strict=True)]
    k, ratio = len(etas), mp.exp(-epsilon) if math.isfinite(epsilon) else mp.mpf(0)

    def likelihood(label: int) -> mpmath.mpf:
        inner = 1 - ratio if 0 < released < k else 1
        return sum(q * inner / (1 + ratio) * ratio ** abs(released - s - label) for s, q in enumerate(law))

    yes, no = etas[member - 1] * likelihood(1), (1 - mp.mpf(etas[member - 1])) * likelihood(0)
    return yes / (yes + no)


def drawn(seed: int) -> tuple[list[float], int, int, float]:
    """A bag with rare and certain labels, a member, a possible release, and the epsilon of its noise."""
    random_numbers = random.Random(seed)
    kinds = [0.01, 1e-125, 1e-149, 1e-160, 1e-200, 1e-300, 1.0 - 2.0**-53, 0.5, 0.3, 1.0, 0.0]
    few = random_numbers.sample(kinds, 3)
    etas = [random_numbers.choice(few) for _ in range(random_numbers.choice([3, 20, 120]))]
    epsilon = random_numbers.choice([math.inf, 0.5, 20.0, 400.0])
    least, most = (0, len(etas)) if math.isfinite(epsilon) else (etas.count(1.0), sum(e > 0 for e in etas))
    released = random_numbers.choice([least, most, random_numbers.randint(least, most)])
    return etas, random_numbers.randint(1, len(etas)), released, epsilon


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(400))
def test_the_posterior_is_enclosed_also_where_its_likelihoods_underflow(seed: int) -> None:
    etas, member, released, epsilon = drawn(seed)
    noise = (
        {"mechanism": "llp-geometric", "label_epsilon": epsilon}
        if epsilon < math.inf
        else {"mechanism": "llp"}
    )
    answer = evaluate(
        Point(problem=asked(etas, member=member, released=float(released), **noise), method=BAG())
    )
    with mpmath.workdps(60):
        truth = exact(etas, member, released, epsilon)
        assert answer.lower <= truth <= answer.upper, (etas, member, released, epsilon)
    if epsilon == math.inf:
        assert answer.upper <= answer.lower * (1.0 + 1e-8) + 1e-259, (etas, member, released)


@pytest.mark.parametrize("released", [199, 190, 150])
def test_equal_labels_have_the_share_of_the_sum_however_rare_it_is(released: int) -> None:
    problem = asked([0.01] * 200, member=7, mechanism="llp", released=float(released))
    answer = evaluate(Point(problem=problem, method=BAG()))
    assert answer.lower <= released / 200 <= answer.upper <= answer.lower * (1.0 + 1e-8)


@pytest.mark.parametrize(
    ("etas", "released", "posterior"),
    [
        ([0.01] * 200, 200, 1.0),
        ([0.99] * 200, 0, 0.0),
        ([1e-160] * 3, 3, 1.0),
        ([1.0, 1.0, 0.4, 0.0], 3, 1.0),
    ],
)
def test_the_largest_and_the_smallest_sum_leave_no_doubt(
    etas: list[float], released: int, posterior: float
) -> None:
    member = 3
    problem = asked(etas, member=member, mechanism="llp", released=float(released))
    answer = evaluate(Point(problem=problem, method=BAG()))
    assert (answer.lower, answer.upper) == (posterior, posterior)


@pytest.mark.parametrize(
    ("etas", "epsilon", "member", "released"),
    [
        ([1e-200, 1e-125, 1e-149], math.inf, 1, 2),
        ([1e-200, 1e-200, 1e-200], math.inf, 1, 2),
        ([1.0 - 2.0**-52, 0.5, 1e-300, 0.0, 1e-300], 300.0, 3, 4),
        ([1e-160, 1e-300, 1e-300], 700.0, 2, 2),
    ],
)
def test_products_with_rare_labels_may_underflow(
    etas: list[float], epsilon: float, member: int, released: int
) -> None:
    noise = {"mechanism": "llp-geometric" if epsilon < math.inf else "llp", "label_epsilon": epsilon}
    problem = asked(etas, member=member, released=float(released), **noise)
    answer = evaluate(Point(problem=problem, method=BAG()))
    with mpmath.workdps(60):
        assert answer.lower <= exact(etas, member, released, epsilon) <= answer.upper


def test_a_probability_with_few_digits_is_refused_with_the_least_one_that_is_accepted() -> None:
    with pytest.raises(DomainError, match=r"Expected 0 or a number of at least 2\.2250738585072014e-308"):
        asked([5e-324, 0.5], mechanism="llp", released=1.0)
    assert asked([2.2250738585072014e-308, 0.0], mechanism="llp", released=1.0).assumption() == ""


def test_noise_alone_bounds_a_posterior_whose_likelihoods_underflow() -> None:
    problem = asked(
        [1.0] * 40 + [0.5], mechanism="llp-geometric", label_epsilon=20.0, released=0.0, member=41
    )
    answer = evaluate(Point(problem=problem, method=BAG()))
    assert answer.lower == pytest.approx(math.exp(-20) / (1 + math.exp(-20)), rel=1e-12)
    assert answer.upper == pytest.approx(1 / (1 + math.exp(-20)), rel=1e-12)
