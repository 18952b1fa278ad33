"""Sums of losses of k out of t steps against enumeration, binomial counts, and the profile of the sum."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from privcore.likelihood_ratio.allocated.symmetric import summed
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution, Resolution
from privcore.likelihood_ratio.profile import delta_lower
from privcore.likelihood_ratio.steps import lognormal
from tests.privcore.likelihood_ratio.test_symmetric import CASES, STEP, as_law, enumerated, exact_delta

TWO = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]), mass_error=2e-16, value_error=2e-16)
DIRECTIONS = ("remove", "add")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("rate", [0.03, 0.4, 1.0])
@pytest.mark.parametrize("spacing", [0.01, 0.5, 3.0])
@pytest.mark.parametrize(("participations", "steps"), CASES)
def test_every_rate_and_spacing_stays_below_the_enumerated_profile(
    participations: int, steps: int, rate: float, spacing: float
) -> None:
    truth = enumerated(participations, steps)
    law = summed(as_law(STEP), participations, steps, rate=rate, spacing=spacing, tail=1e-12, most=3.0)
    kappas = (Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(5, 4), Fraction(2), Fraction(9))
    for direction, kappa in itertools.product(DIRECTIONS, kappas):
        above = math.nextafter(math.log(kappa), math.inf)
        assert delta_lower(law, above, direction) <= exact_delta(truth, kappa, direction)


def counted(participations: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return masses and ratios by the number of larger outcomes of `TWO`, which is a sufficient statistic."""
    ups = np.arange(steps + 1)
    j = np.arange(participations + 1)
    weights = hypergeom.pmf(j[None, :], steps, ups[:, None], participations)
    values = np.where(weights > 0.0, weights * 3.0**j * 0.5 ** (participations - j), 0.0).sum(axis=1)
    return binom.pmf(ups, steps, 0.2), values


@pytest.mark.parametrize(
    ("participations", "steps"), [(1, 4), (2, 7), (12, 30), (20, 59), (59, 60), (300, 1000)]
)
def test_two_outcomes_of_a_step_have_the_exact_profile(participations: int, steps: int) -> None:
    masses, values = counted(participations, steps)
    law = summed(TWO, participations, steps, rate=0.3, spacing=0.2, tail=1e-13, most=2.0)
    for kappa in (0.3, 0.9, 1.0, 1.5, 4.0):
        remove, add = (float(masses @ np.maximum(x, 0.0)) for x in (values - kappa, 1.0 - kappa * values))
        for direction, delta in (("remove", remove), ("add", add)):
            assert delta_lower(law, math.log(kappa), direction) == pytest.approx(delta, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("tail", [1e-2, 1e-4])
@pytest.mark.parametrize("most", [0.0, 1.5])
def test_tails_that_are_left_out_change_both_directions_by_no_more_than_stated(
    tail: float, most: float
) -> None:
    masses, values = counted(12, 30)
    law = summed(TWO, 12, 30, rate=0.3, spacing=0.2, tail=tail, most=most)
    assert law.p.size < 31
    kappa = math.exp(most)
    remove, add = (float(masses @ np.maximum(x, 0.0)) for x in (values - kappa, 1.0 - kappa * values))
    for direction, delta in (("remove", remove), ("add", add)):
        found = delta_lower(law, most, direction)
        assert delta - 2.0 * tail <= found <= delta


def test_epochs_are_independent() -> None:
    one = summed(TWO, 1, 3, rate=0.3, spacing=0.2, tail=1e-14, most=2.0)
    two = summed(TWO, 1, 3, epochs=2, rate=0.3, spacing=0.2, tail=1e-14, most=2.0)
    x, p = np.multiply.outer(one.x, one.x).ravel(), np.multiply.outer(one.p, one.p).ravel()
    for kappa in (0.7, 1.0, 2.0):
        both = float(p @ np.maximum(x - kappa, 0.0))
        assert 0.95 * both <= delta_lower(two, math.log(kappa), "remove") <= both + 1e-12


def test_a_ratio_far_beyond_its_threshold_counts_as_infinite() -> None:
    base = lognormal(3.0, Resolution(fineness=0.05, tail=1e-12)).lower
    law = summed(base, 20, 40, rate=0.5, spacing=0.05, tail=1e-9, most=0.0)
    assert law.infinite > 0.99
    assert delta_lower(law, 0.0, "remove") > 0.999


def test_too_many_sums_are_refused() -> None:
    with pytest.raises(LikelihoodRangeError):
        summed(TWO, 2, 3, rate=0.3, spacing=1e-9, tail=1e-9, most=1.0)
