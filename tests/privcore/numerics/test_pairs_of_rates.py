"""Sets of pairs of rates below the Gaussian trade-off curve, and the joint test of them."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from privcore.numerics.clopper_pearson import rate_at_least, rate_at_most
from privcore.numerics.gaussian import gaussian_rate_bounds
from privcore.numerics.pairs_of_rates import GaussianRates
from privcore.numerics.two_rates import TwoSamples, refuted

Samples = NDArray[np.float64]


def found(x: int, n: int, y: int, m: int, error: float) -> float:
    """Return the refuted mu."""
    counts = TwoSamples(many=x, trials=n, few=y, others=m)
    return refuted(counts, lambda mu: GaussianRates(mu=mu), 60.0, error)


def separate(x: int, n: int, y: int, m: int, error: float) -> float:
    """Return the mu that separate bounds of both rates refute."""
    part = 1.0 - math.sqrt(1.0 - error)
    return max(0.0, float(ndtri(rate_at_least(n, x, part)) - ndtri(rate_at_most(m, y, part))))


@pytest.mark.parametrize("error", [0.5, 0.05])
@pytest.mark.parametrize(
    ("n", "m"), [(4, 4), *(pytest.param(*sizes, marks=pytest.mark.thorough) for sizes in ((15, 15), (4, 40)))]
)
def test_no_pair_of_rates_is_refuted_more_often_than_the_error(n: int, m: int, error: float) -> None:
    """By exact enumeration, also of pairs near the corners, where one rate is nearly 0 or 1."""
    refutes = np.array([[found(x, n, y, m, error) for y in range(m + 1)] for x in range(n + 1)])
    quantiles = np.concatenate([np.linspace(-4.0, 4.0, 161), [-30.0, -7.0, -5.0, 5.0, 7.0]])
    rates = ndtr(quantiles)
    first, second = (binom.pmf(np.arange(k + 1)[None, :], k, rates[:, None]) for k in (n, m))
    worst = 0.0
    for quantile, law in zip(quantiles, first, strict=True):
        truth = np.maximum(0.0, quantile - quantiles) + 1e-9
        wrong = refutes[None] > truth[:, None, None]
        worst = max(worst, float(np.einsum("x,qy,qxy->q", law, second, wrong).max()))
    assert 0.25 * error < worst <= error


@pytest.mark.parametrize("error", [0.3, 0.05, 1e-4])
@pytest.mark.parametrize(
    ("x", "n", "y", "m"),
    [(90, 100, 5, 100), (40, 40, 0, 25), (9, 9, 300, 2000), (600, 1000, 1, 1000), (700_000, 10**6, 5, 10**6)],
)
def test_no_pair_below_the_refuted_curve_passes(x: int, n: int, y: int, m: int, error: float) -> None:
    """Independent of the rectangles and their angles: pairs drawn below the curve."""
    mu = found(x, n, y, m, error)
    critical, rng = -float(ndtri(error)), np.random.default_rng(5)
    ends = rate_at_least(n, x, 2.5e-4 * error), min(rate_at_most(n, x, 2.5e-4 * error), 1.0 - 0.06 / n)
    low, high = ndtri(ends).tolist()
    p = ndtr(rng.uniform(low, high, 20_000))
    q = np.minimum(ndtr(ndtri(p) - mu) * (1.0 + rng.uniform(0.0, 0.7, p.size) ** 3), 1.0 - 1e-12)
    many, few = binom(n, p), binom(m, q)
    one = np.where(p < x / n, -ndtri(many.sf(x - 1)), ndtri(many.cdf(x - 1)))
    two = np.where(q > y / m, -ndtri(few.cdf(y)), ndtri(few.sf(y)))
    weight = deviations(p) / math.sqrt(n), deviations(q) / math.sqrt(m)
    angle = np.arctan2(weight[1], weight[0])
    reach = max(critical, 1.6)
    angle = np.maximum(angle, np.arccos(np.minimum(1.0, np.sqrt(n * (1.0 - p) / p) / reach)))
    angle = np.minimum(angle, np.arcsin(np.minimum(1.0, np.sqrt(m * q / (1.0 - q)) / reach)))
    low, high = (rate(m, y, 2.5e-4 * error) for rate in (rate_at_least, rate_at_most))
    inside = (q >= max(low, 0.06 / m)) & (q <= high)
    assert inside.sum() > 100
    assert (np.cos(angle) * one + np.sin(angle) * two)[inside].min() >= critical


def deviations(rate: Samples) -> Samples:
    """Return the standard deviation of the normal quantile of a rate, from one trial."""
    density = np.exp(-0.5 * ndtri(rate) ** 2) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.sqrt(rate * (1.0 - rate)) / density)


def test_the_curve_is_the_upper_end_of_the_trade_off() -> None:
    rates = np.array([1e-300, 1e-30, 1e-3, 0.3, 0.5, 0.99, 1.0 - 1e-12])
    for mu in (0.0, 1e-9, 0.5, 3.0, 40.0):
        expected = [gaussian_rate_bounds(rate, mu)[1] for rate in rates.tolist()]
        assert GaussianRates(mu=mu).most(rates).tolist() == expected
    least, most = GaussianRates(mu=1.0).most(np.array([0.0, 1.0]))
    assert 0.0 < least < 1e-280
    assert most == 1.0


def test_the_variance_of_a_quantile_is_enclosed_on_every_interval() -> None:
    """By angles at equal rates of the other sample, whose variance is the same at both ends."""
    rng, ends = np.random.default_rng(8), np.full(500, 0.5)
    low, high = np.sort(ndtr(rng.uniform(-5.0, 5.0, (2, 500))), axis=0)
    least, most = GaussianRates(mu=1.0).angles((10**9, 10**9), 2.0, (ends, ends), (low, high))
    for share in (0.0, 0.2, 0.7, 1.0):
        q = low + share * (high - low)
        angle = np.arctan2(deviations(q), deviations(ends))
        assert (least <= angle).all()
        assert (angle <= most).all()


def test_a_joint_test_refutes_more_than_separate_bounds_at_usual_confidences() -> None:
    gains = []
    for counts in (
        (900, 1000, 50, 1000),
        (60, 100, 40, 100),
        (20, 1000, 10, 100_000),
        (100, 100, 0, 100),
        (10, 10, 0, 1000),
        (990, 1000, 10, 1000),
        (500, 1000, 1, 1000),
        (30, 100, 1, 100_000),
    ):
        for error in (0.05, 0.01):
            joint, apart = found(*counts, error), separate(*counts, error)
            assert joint >= 0.99 * apart, counts
            gains.append(joint - apart)
    assert np.mean(gains) > 0.08


def test_rates_up_to_1_are_numbers_in_order() -> None:
    """The confidence can be so high that the second rate is only known to be at most 1."""
    rates = GaussianRates(mu=0.0).rates(0.0, 1.0, 0.5)
    assert np.isfinite(rates).all()
    assert (rates[0], rates[-1]) == (0.0, 1.0)


def test_it_is_nearly_the_normal_limit_for_many_runs() -> None:
    for x, n, y, m in ((60_000, 100_000, 40_000, 100_000), (500_000, 10**6, 2000, 10**6)):
        p, q = np.array([x / n]), np.array([y / m])
        error = math.hypot(float(deviations(p)[0]) / math.sqrt(n), float(deviations(q)[0]) / math.sqrt(m))
        limit = float(ndtri(p)[0] - ndtri(q)[0]) - 1.645 * error
        assert found(x, n, y, m, 0.05) == pytest.approx(limit, abs=0.1 * error)


def test_to_exchange_events_and_samples_changes_nothing_but_rounding() -> None:
    for x, n, y, m in ((90, 100, 5, 70), (40, 40, 3, 200)):
        assert found(x, n, y, m, 0.05) == pytest.approx(found(m - y, m, n - x, n, 0.05), rel=0.01)
