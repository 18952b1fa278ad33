"""Brackets of small discrete distributions against enumeration in exact rational arithmetic."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    combine,
    dominating_power,
    dominating_product,
    mean_of,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.profile import delta_lower, delta_upper, epsilon_lower, epsilon_upper
from privcore.likelihood_ratio.steps import lognormal

Distribution = dict[Fraction, Fraction]
LAWS: dict[str, Distribution] = {
    "randomized response": {Fraction(3, 1): Fraction(1, 4), Fraction(1, 3): Fraction(3, 4)},
    "three outcomes": {
        Fraction(8): Fraction(1, 16),
        Fraction(1, 2): Fraction(3, 4),
        Fraction(2, 3): Fraction(3, 16),
    },
    "one outcome impossible under P": {Fraction(0): Fraction(1, 5), Fraction(5, 4): Fraction(4, 5)},
}


def as_bracket(law: Distribution) -> RatioBracket:
    values = sorted(law)
    exact = RatioDistribution(
        x=np.array([float(v) for v in values]),
        p=np.array([float(law[v]) for v in values]),
        mass_error=2.0**-52,
        value_error=2.0**-52,
    )
    return RatioBracket(lower=exact, upper=exact)


def enumerate_law(law: Distribution, times: int, *, product: bool) -> Distribution:
    result: Distribution = {Fraction(1) if product else Fraction(0): Fraction(1)}
    for _ in range(times):
        after: Distribution = defaultdict(Fraction)
        for (v, p), (w, q) in itertools.product(result.items(), law.items()):
            after[v * w if product else v + w] += p * q
        result = after
    return result if product else {v / times: p for v, p in result.items()}


def exact_delta(law: Distribution, kappa: Fraction, direction: str) -> Fraction:
    if direction == "remove":
        return sum((p * max(v - kappa, Fraction(0)) for v, p in law.items()), Fraction(0))
    return sum((p * max(1 - kappa * v, Fraction(0)) for v, p in law.items()), Fraction(0))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("times", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("name", LAWS)
def test_means_and_products_enclose_the_enumerated_profile(
    name: str, times: int, product: bool, direction: str
) -> None:
    law = LAWS[name]
    truth = enumerate_law(law, times, product=product)
    res = Resolution(fineness=0.1, tail=1e-9)
    power = product_of if product else mean_of
    bracket = power(as_bracket(law), times, res)
    for kappa in (Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(5, 4), Fraction(2), Fraction(9)):
        delta = exact_delta(truth, kappa, direction)
        epsilon = math.log(kappa)
        # log(kappa) is itself rounded; the two neighbours enclose it
        assert delta_lower(bracket.lower, math.nextafter(epsilon, math.inf), direction) <= delta
        assert delta <= delta_upper(bracket.upper, math.nextafter(epsilon, -math.inf), direction)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("times", [1, 3, 12])
@pytest.mark.parametrize("name", LAWS)
def test_an_upper_end_alone_is_above_the_enumerated_profile_and_as_close(
    name: str, times: int, direction: str
) -> None:
    law = as_bracket(LAWS[name])
    truth = enumerate_law(LAWS[name], times + 1, product=True)
    res = Resolution(fineness=0.01, tail=1e-9)
    alone = dominating_product(dominating_power(law.upper, times, res), law.upper, res)
    both = combine(product_of(law, times, res), law, res, product=True)
    for kappa in (Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(5, 4), Fraction(2), Fraction(9)):
        epsilon = math.nextafter(math.log(kappa), -math.inf)
        found = delta_upper(alone, epsilon, direction)
        assert exact_delta(truth, kappa, direction) <= found
        assert found <= delta_upper(both.upper, epsilon, direction) * 1.001 + 1e-6


@pytest.mark.parametrize("direction", ["remove", "add", "add-remove"])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-8])
def test_epsilon_is_the_inverse_of_delta_on_the_safe_side(delta: float, direction: str) -> None:
    bracket = mean_of(
        lognormal(1.0, Resolution(fineness=0.1, tail=1e-14)), 5, Resolution(fineness=0.1, tail=1e-14)
    )
    upper = epsilon_upper(bracket.upper, delta, direction)
    lower = epsilon_lower(bracket.lower, delta, direction)
    assert delta_upper(bracket.upper, upper, direction) <= delta
    assert lower == 0.0 or delta_lower(bracket.lower, lower, direction) > delta
    assert delta_upper(bracket.upper, upper * (1.0 - 1e-6), direction) > delta or upper == 0.0
    assert lower <= upper


def read(bracket: RatioBracket, epsilon: float) -> list[tuple[float, float]]:
    return [
        (delta_lower(bracket.lower, epsilon, d), delta_upper(bracket.upper, epsilon, d))
        for d in ("add", "remove")
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_finer_resolution_never_contradicts_a_coarser_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    s = float(rng.uniform(0.1, 2.5))
    times = int(rng.integers(2, 3000))
    probability = float(10.0 ** -rng.uniform(1, 5))
    epsilon = float(rng.uniform(0.0, 3.0)) / math.sqrt(times)
    ends = []
    for fineness in (0.2, 0.05):
        res = Resolution(fineness=fineness, tail=1e-15)
        base = lognormal(s, res)
        ends += [
            read(mean_of(base, times, res), epsilon),
            read(product_of(mixed(base, probability, res), times, res), epsilon),
        ]
    coarse_mean, coarse_product, fine_mean, fine_product = ends
    for coarse, fine in ((coarse_mean, fine_mean), (coarse_product, fine_product)):
        for (low, high), (finer_low, finer_high) in zip(coarse, fine, strict=True):
            assert max(low, finer_low) <= min(high, finer_high)


@pytest.mark.parametrize("tail", [1e-1, 1e-5, 1e-9])
@pytest.mark.parametrize("which", ["all up", "all down", "top up", "top down", "bottom up"])
def test_errors_of_mixed_values_are_covered_whether_by_values_or_by_drifts(which: str, tail: float) -> None:
    """A distribution with other values, within the error, has its enumerated profile inside the bounds."""
    error, probability, times = 0.05, 0.3, 3
    x = np.array([0.5, 0.9, 2.0, 8.0, 100.0])
    p = np.array([0.5, 0.3, 0.17, 0.0299, 0.0001])
    law = RatioDistribution(x=x, p=p, mass_error=1e-15, value_error=error)
    moved = {"all": slice(None), "top": slice(-1, None), "bottom": slice(0, 1)}[which.rsplit(maxsplit=1)[0]]
    meant = x.copy()
    meant[moved] *= math.exp(error if which.endswith("up") else -error)
    meant = 1.0 - probability + probability * meant
    values, masses = meant, p
    for _ in range(times - 1):
        values, masses = np.outer(values, meant).ravel(), np.outer(masses, p).ravel()
    res = Resolution(fineness=0.01, tail=tail)
    found = product_of(mixed(RatioBracket(lower=law, upper=law), probability, res), times, res)
    for epsilon in (-1.0, 0.0, 0.3, 1.0, 2.0, 5.0):
        truth = {
            "add": float(masses @ np.maximum(1.0 - math.exp(epsilon) * values, 0.0)),
            "remove": float(masses @ np.maximum(values - math.exp(epsilon), 0.0)),
        }
        for direction, (lower, upper) in zip(("add", "remove"), read(found, epsilon), strict=True):
            assert lower <= truth[direction] * (1.0 + 1e-9) + 1e-14
            assert upper >= truth[direction] * (1.0 - 1e-9) - 1e-14


def test_a_value_that_is_half_of_the_mix_errs_by_more_than_half_of_the_error() -> None:
    """log(1 + s (e^v - 1)) exceeds s v: the exact value may be 0.5 + 0.5 e^0.1."""
    law = RatioDistribution(x=np.array([1.0]), p=np.array([1.0]), value_error=0.1)
    found = mixed(RatioBracket(lower=law, upper=law), 0.5, Resolution(fineness=0.1, tail=1e-300))
    assert delta_upper(found.upper, 0.0, "remove") >= 0.5 * math.expm1(0.1)


def test_seldom_values_do_not_set_the_error_of_all() -> None:
    """A large value of mass 1e-12 is charged to a drift: the error of the others depends on their share."""
    x, p = np.array([0.9, 1e9]), np.array([1.0 - 1e-12, 1e-12])
    law = RatioDistribution(x=x, p=p, mass_error=1e-15, value_error=1e-6)
    low, high = (
        mixed(RatioBracket(lower=law, upper=law), 1e-6, Resolution(fineness=0.1, tail=t)).upper
        for t in (1e-20, 1e-13)
    )
    assert low.value_error == pytest.approx(1e-6, rel=1e-2)
    assert high.value_error < 2e-12
    assert high.drift_remove == pytest.approx(2e-15, rel=1e-2, abs=0)


def test_atoms_at_the_end_of_the_doubles_do_not_disturb_the_order_of_a_garbling() -> None:
    """A mass of 5e-324 has no conditional mean, and a mean out of order would spoil the next grid."""
    res = Resolution(fineness=0.025, tail=1e-15)
    bracket = mean_of(lognormal(1.0 / 3.1708520836714746, res), 10_000, res)
    assert np.all(np.diff(bracket.lower.x) > 0.0)
    ends = epsilon_lower(bracket.lower, 1e-8, "add-remove"), epsilon_upper(bracket.upper, 1e-8, "add-remove")
    assert 0.0 < ends[0] < ends[1] < 1.01 * ends[0]


def test_mass_and_mean_are_kept_by_both_sides() -> None:
    res = Resolution(fineness=0.1, tail=1e-12)
    bracket = mean_of(lognormal(2.0, res), 1000, res)
    for law in (bracket.lower, bracket.upper):
        assert law.p.sum() == pytest.approx(1.0, abs=law.mass_error + 1e-12)
        assert law.p @ law.x + law.infinite == pytest.approx(
            1.0, abs=law.mass_error + law.value_error + 1e-12
        )


def test_a_product_that_leaves_the_doubles_is_refused_rather_than_wrong() -> None:
    res = Resolution(fineness=0.2, tail=1e-12)
    base = lognormal(8.0, res)
    with pytest.raises(LikelihoodRangeError, match="double precision"):
        product_of(base, 1000, res)
    with pytest.raises(LikelihoodRangeError):
        lognormal(100.0, res)


def test_a_lower_distribution_whose_square_is_out_of_range_is_refused() -> None:
    """A conditional mean may lie far beyond the last edge, whose size is checked."""
    law = RatioDistribution(x=np.array([0.5, 1e160]), p=np.array([1.0, 5e-161]))
    with pytest.raises(LikelihoodRangeError):
        product_of(RatioBracket(lower=law, upper=law), 2, Resolution(fineness=0.1, tail=1e-9))


def test_combining_a_law_with_itself_by_either_route_agrees() -> None:
    res = Resolution(fineness=0.1, tail=1e-12)
    base = lognormal(1.0, res)
    copy = RatioBracket(lower=base.lower, upper=base.upper)
    square = combine(base, base, res, product=True)
    pairs = combine(base, copy, res, product=True)
    np.testing.assert_allclose(square.upper.p, pairs.upper.p, rtol=1e-12)


def with_errors(scale: float, infinite: float) -> RatioDistribution:
    return RatioDistribution(
        x=np.array([0.5, 1.2]),
        p=np.array([0.5, 0.5]),
        infinite=infinite,
        mass_error=0.01 * scale,
        value_error=0.02 * scale,
        drift_remove=0.03 * scale,
        drift_add=0.04 * scale,
    )


def test_the_errors_and_the_means_at_infinity_of_two_factors_add_up() -> None:
    res = Resolution(fineness=0.1, tail=1e-12)
    a, b = with_errors(1.0, 0.1), with_errors(2.0, 0.2)
    found = combine(RatioBracket(lower=a, upper=a), RatioBracket(lower=b, upper=b), res, product=True)
    for law in (found.lower, found.upper):
        assert law.mass_error >= a.mass_error + b.mass_error
        assert law.value_error >= a.value_error + b.value_error
        assert law.drift_remove >= a.drift_remove + b.drift_remove
        assert law.drift_add >= a.drift_add + b.drift_add
        assert law.infinite == pytest.approx(1.0 - 0.9 * 0.8, abs=1e-9)


def test_a_drift_counts_in_its_own_direction() -> None:
    """An atom at 1 reveals nothing, so delta at epsilon 1 comes from the errors alone."""
    for name, own, other in (("drift_remove", "remove", "add"), ("drift_add", "add", "remove")):
        law = RatioDistribution(x=np.array([1.0]), p=np.array([1.0]), **{name: 0.1})
        assert delta_upper(law, 1.0, own) >= 0.1
        assert delta_upper(law, 1.0, other) < 1e-12
        assert delta_lower(law, -1.0, own) < delta_lower(law, -1.0, other) - 0.09


def test_the_relation_of_both_directions_is_as_bad_as_the_worse_one() -> None:
    """A ratio that may be 0 reveals more when an example is added, a rare large one when it is removed."""
    zero = RatioDistribution(x=np.array([0.0, 1.25]), p=np.array([0.2, 0.8]))
    large = RatioDistribution(x=np.array([0.5, 500.5]), p=np.array([0.999, 0.001]))
    for law, worse, better in ((zero, "add", "remove"), (large, "remove", "add")):
        for read in (delta_upper, delta_lower):
            assert read(law, 0.5, "add-remove") == read(law, 0.5, worse) > read(law, 0.5, better)
        for inverse in (epsilon_upper, epsilon_lower):
            assert inverse(law, 0.1, "add-remove") == inverse(law, 0.1, worse) > inverse(law, 0.1, better)
