"""The joint test of two rates: quantiles from below, the frequency of errors, and every pair of the set."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from privcore.numerics.binomial import LARGEST_SUMMED, quantile_of_few, quantile_of_many
from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most
from privcore.numerics.pairs_of_rates import RatesBelow
from privcore.numerics.two_rates import Region, TwoSamples, refuted
from tests.suites import some


def gain(height: float) -> RatesBelow:
    return RatesBelow(slope=1.0, height=height, weighed=1.0)


def private(epsilon: float) -> RatesBelow:
    return RatesBelow(slope=math.exp(epsilon), height=1e-5)


@pytest.mark.parametrize("trials", [1, 7, 300, 40_000])
def test_quantiles_are_those_of_the_exact_tails_rounded_down(trials: int) -> None:
    for rate in (1e-3, 0.2, 0.5, 0.97):
        law = binom(trials, rate)
        for count in {0, 1, trials // 3, round(trials * rate), trials - 1, trials}:
            for found, tail, rest in (
                (quantile_of_many(trials, count, rate), law.sf(count - 1), law.cdf(count - 1)),
                (quantile_of_few(trials, count, rate), law.cdf(count), law.sf(count)),
            ):
                exact = float(-ndtri(tail) if tail < rest else ndtri(rest))
                if abs(exact) < 30.0:
                    assert exact - 1e-6 * (1.0 + abs(exact)) <= found <= exact


@pytest.mark.parametrize("rate", [0.01, 0.4])
def test_the_quantile_of_a_large_count_is_too_small_by_less_than_one_count(rate: float) -> None:
    trials = round(2.0 * LARGEST_SUMMED / (rate * (1.0 - rate)))
    law, deviation = binom(trials, rate), math.sqrt(2.0 * LARGEST_SUMMED)
    for place in (-5.0, -1.0, 0.0, 2.0, 6.0):
        count = round(trials * rate + place * deviation)
        for found, tail in (
            (quantile_of_many(trials, count, rate), law.sf(count - 1)),
            (quantile_of_few(trials, count, rate), law.cdf(count)),
        ):
            assert -1.1 / deviation <= found + ndtri(tail) <= 1e-9


@pytest.mark.parametrize("family", [gain, private])
@pytest.mark.parametrize(
    "counts",
    [
        TwoSamples(many=90, trials=100, few=5, others=100),
        TwoSamples(many=40, trials=40, few=0, others=25),
        TwoSamples(many=30, trials=2000, few=2, others=3000),
        TwoSamples(many=700_000, trials=10**6, few=600_000, others=10**6),
    ],
    ids=lambda counts: f"{counts.many} of {counts.trials}",
)
def test_no_pair_of_a_refuted_set_passes_the_test(
    counts: TwoSamples, family: Callable[[float], RatesBelow]
) -> None:
    """Independent of the rectangles: pairs drawn below the line, with tails of another library."""
    error = 0.05
    line = family(refuted(counts, family, 20.0, error))
    rng = np.random.default_rng(2)
    low, high = (rate(counts.others, counts.few, 1e-4) for rate in (rate_at_least, rate_at_most))
    q = rng.uniform(low, high, 20_000)
    p = np.minimum(line.slope * q + line.height, 1.0) * (1.0 - rng.uniform(0.0, 0.2, q.size) ** 3)
    inside = (counts.trials * (1.0 - p) > 0.05) & (counts.others * q > 0.05)
    part = 0.25e-3 * error
    inside &= p >= rate_at_least(counts.trials, counts.many, part)
    inside &= p <= rate_at_most(counts.trials, counts.many, part)
    inside &= q >= rate_at_least(counts.others, counts.few, part)
    inside &= q <= rate_at_most(counts.others, counts.few, part)
    assert inside.sum() > 100
    p, q = p[inside], q[inside]
    many, few = binom(counts.trials, p), binom(counts.others, q)
    one = np.where(
        p < counts.many / counts.trials, -ndtri(many.sf(counts.many - 1)), ndtri(many.cdf(counts.many - 1))
    )
    two = np.where(q > counts.few / counts.others, -ndtri(few.cdf(counts.few)), ndtri(few.sf(counts.few)))
    slope = p / q if line.weighed is None else line.weighed
    errors = np.sqrt(p * (1.0 - p) / counts.trials), slope * np.sqrt(q * (1.0 - q) / counts.others)
    angle = np.arctan2(errors[1], errors[0])
    assert (np.cos(angle) * one + np.sin(angle) * two).min() >= -ndtri(error)


@pytest.mark.parametrize("family", [gain, private])
def test_a_set_that_is_a_little_too_large_is_not_refuted(family: Callable[[float], RatesBelow]) -> None:
    counts = TwoSamples(many=90, trials=100, few=5, others=100)
    largest = refuted(counts, family, 20.0, 0.05)
    region = Region.of(counts, 0.05)
    assert region.refutes(family(largest))
    assert not region.refutes(family(1.02 * largest))


def test_more_is_refuted_than_by_two_separate_bounds_and_nearly_the_normal_limit() -> None:
    for x, n, y, m in ((90, 100, 5, 100), (600, 1000, 400, 1000), (60_000, 100_000, 50_000, 100_000)):
        found = refuted(TwoSamples(many=x, trials=n, few=y, others=m), gain, 1.0, 0.05)
        one, other = x / n, y / m
        limit = one - other - 1.645 * math.sqrt(one * (1.0 - one) / n + other * (1.0 - other) / m)
        part = 1.0 - math.sqrt(0.95)
        separate = rate_at_least(n, x, part) - rate_at_most(m, y, part)
        assert separate < found < one - other
        assert found - separate > 0.5 * (limit - separate)


def test_nothing_is_refuted_without_a_difference() -> None:
    for x, n, y, m in (
        (0, 0, 0, 0),
        (0, 5, 0, 5),
        (5, 5, 5, 5),
        (1, 1, 0, 1),
        (50, 100, 50, 100),
        (5, 5, 0, 0),
    ):
        assert refuted(TwoSamples(many=x, trials=n, few=y, others=m), gain, 1.0, 0.05) == 0.0


def test_a_smaller_error_refutes_less() -> None:
    counts = TwoSamples(many=90, trials=100, few=5, others=100)
    found = [refuted(counts, gain, 1.0, error) for error in (0.499, 0.05, 1e-3, 1e-9)]
    assert found == sorted(found, reverse=True)
    assert found[0] < 0.9 - 0.05
    assert found[-1] > 0.3


@pytest.mark.parametrize("n", [4, pytest.param(25, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.9, 0.3), (0.6, 0.05), (1.0, 0.0), (0.999, 0.5)])
def test_the_exact_frequency_of_errors_is_at_most_the_error(n: int, p: float, q: float) -> None:
    many, few = binom(n, p).pmf(np.arange(n + 1)), binom(n, q).pmf(np.arange(n + 1))
    for error in some((0.3, 0.05), 1):
        wrong = math.fsum(
            float(many[x] * few[y])
            for x in range(n + 1)
            for y in range(n + 1)
            if many[x] * few[y] > 0.0
            and refuted(TwoSamples(many=x, trials=n, few=y, others=n), gain, 1.0, error) > p - q
        )
        assert wrong <= error
