"""Numbers of records for means: exact for Gaussian records, and those of Theorem 13 and Remark 13."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from privcore.membership.gaussian_mean.problems import (
    MembershipMeanRecords,
    MembershipRateAdvantage,
    MembershipRateRecords,
)
from privcore.membership.gaussian_mean.remark import (
    MembershipMean,
    MembershipRate,
    MembershipRemark,
    MembershipTheorem,
)


def one_coordinate(n: int) -> float:
    """Return the distance of N(0, 1) and N(b n^(-1/2), 1 - 1/n), averaged over normal b."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    variance = 1.0 - 1.0 / n
    mean = nodes / math.sqrt(n)
    # equal densities: x^2 (1 - 1/v) + 2 x m / v - m^2 / v - ln v = 0
    a, b, c = 1.0 - 1.0 / variance, 2.0 * mean / variance, -(mean**2) / variance - math.log(variance)
    root = np.sqrt(b * b - 4.0 * a * c)
    low, high = (-b + root) / (2.0 * a), (-b - root) / (2.0 * a)
    deviation = math.sqrt(variance)
    inside = norm.cdf((high - mean) / deviation) - norm.cdf((low - mean) / deviation)
    return float((weights * (inside - norm.cdf(high) + norm.cdf(low))).sum() / math.sqrt(2.0 * math.pi))


def two_coordinates(n: int) -> float:
    rho = 1.0 / math.sqrt(n)
    return rho * math.pow(1.0 - rho * rho, 1.0 / rho) / (2.0 * (1.0 - rho))


@pytest.mark.parametrize(("coordinates", "of"), [(1, one_coordinate), (2, two_coordinates)])
@pytest.mark.parametrize("target", [0.2, 0.1, 0.03])
def test_the_least_number_of_gaussian_records_is_exact(
    coordinates: int, of: Callable[[int], float], target: float
) -> None:
    asked = MembershipMeanRecords(coordinates=coordinates, target_advantage=target)
    found = MembershipMean().answer(asked, 0)
    least = int(found.lower)
    assert found.upper == least
    assert of(least) <= target < of(least - 1)


def test_remark_13_takes_26_times_the_least_number_of_records() -> None:
    asked = MembershipMeanRecords(coordinates=1, target_advantage=0.1)
    numbers = [kind().answer(asked, 0).upper for kind in (MembershipMean, MembershipRate, MembershipRemark)]
    assert numbers == [12.0, 25.0, 313.0]


@pytest.mark.parametrize("target", [0.7, 0.1, 1e-4])
@pytest.mark.parametrize(("constant", "coordinates"), [(0.4, 1), (2.0, 10), (50.0, 1000)])
def test_the_bound_of_theorem_13_reaches_the_target_at_its_number_of_records(
    constant: float, coordinates: int, target: float
) -> None:
    asked = MembershipRateRecords(rate_constant=constant, coordinates=coordinates, target_advantage=target)
    number = int(MembershipRate().answer(asked, 0).upper)
    assert number <= MembershipRemark().answer(asked, 0).upper

    def bound(records: int) -> float:
        there = MembershipRateAdvantage(rate_constant=constant, coordinates=coordinates, records=records)
        return MembershipTheorem().answer(there, 0).upper

    assert bound(number) <= target * (1.0 + 1e-11)
    assert number == 2 or bound(number - 1) > target * (1.0 - 1e-11)


def test_noise_lowers_the_number_of_records() -> None:
    found = [
        MembershipMean().answer(
            MembershipMeanRecords(coordinates=3, target_advantage=0.05, release_noise=noise), 0
        )
        for noise in (0.0, 0.1, 1.0)
    ]
    assert found[0].lower > found[1].upper > found[2].upper
