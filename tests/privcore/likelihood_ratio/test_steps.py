"""One-step mechanisms against their closed forms, by quadrature and by counting."""

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from privcore.likelihood_ratio.distribution import RatioBracket, Resolution, mean_of
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.likelihood_ratio.steps import GaussianStep, LaplaceStep, ResponseStep, Step, laplace_cells
from privcore.numerics.gaussian import gaussian_delta_bounds

RES = Resolution(fineness=0.02, tail=1e-20)
EPSILONS = [-1.0, -0.2, 0.0, 0.3, 0.9, 1.7]


def laplace_delta(scale: float, epsilon: float) -> float:
    """Return delta of one step, from the two densities in 30 digits; it is symmetric in its directions."""

    def integrand(y: mp.mpf) -> mp.mpf:
        return mp.exp(-abs(y - 1) / scale) - mp.exp(epsilon - abs(y) / scale)

    if abs(epsilon) >= 1.0 / scale:
        return max(0.0, -math.expm1(epsilon))
    with mp.workdps(30):
        cut = mp.mpf("0.5") + mp.mpf(epsilon) * scale / 2
        return float(mp.quad(integrand, [cut, 1, 1 + 20 * scale, 1 + 200 * scale]) / (2 * scale))


def response_delta(local_epsilon: float, local_delta: float, epsilon: float) -> float:
    """Return delta of one randomized response, which leaks the truth with probability local_delta."""
    truth = 1.0 / (1.0 + math.exp(-local_epsilon))
    hidden = max(0.0, truth - math.exp(epsilon) * (1.0 - truth)) + max(
        0.0, (1.0 - truth) - math.exp(epsilon) * truth
    )
    return local_delta + (1.0 - local_delta) * hidden


def gaussian_delta(sigma: float, epsilon: float) -> float:
    return gaussian_delta_bounds(sigma, epsilon)[0]


STEPS: list[Step] = [
    LaplaceStep(1.0),
    LaplaceStep(0.4),
    LaplaceStep(30.0),
    ResponseStep(1.0),
    ResponseStep(3.0),
    ResponseStep(1.0, 0.01),
    GaussianStep(0.7),
]
CLOSED_FORMS: dict[type[Step], Callable[..., float]] = {
    LaplaceStep: laplace_delta,
    ResponseStep: response_delta,
    GaussianStep: gaussian_delta,
}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_step_encloses_its_closed_form(step: Step, epsilon: float) -> None:
    bracket, truth = step.ratio(RES), CLOSED_FORMS[type(step)](*vars(step).values(), epsilon)
    for direction in ("remove", "add"):
        assert delta_lower(bracket.lower, epsilon, direction) <= truth + 1e-14
        assert truth - 1e-14 <= delta_upper(bracket.upper, epsilon, direction)
        width = delta_upper(bracket.upper, epsilon, direction) - delta_lower(
            bracket.lower, epsilon, direction
        )
        assert width <= 1e-2 * truth + 1e-12


@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 50.0, 1e5])
def test_the_cells_of_laplace_noise_hold_all_mass_and_all_of_the_mean(scale: float) -> None:
    cut = np.linspace(0.0, 1.0, 40) ** 2
    for law in (laplace_cells(scale, cut).lower, laplace_cells(scale, cut).upper):
        assert law.p.sum() == pytest.approx(1.0, abs=1e-12)
        assert law.p @ law.x + law.infinite == pytest.approx(1.0, abs=1e-12)


def test_two_laplace_steps_agree_with_a_double_integral() -> None:
    """One of two steps: the mean of two ratios, integrated over both outputs."""
    scale, kappa = 0.8, math.exp(0.4)

    def ratio(y: float) -> float:
        return math.exp((abs(y) - abs(y - 1.0)) / scale)

    atoms = [(math.exp(-1.0 / scale), 0.5), (math.exp(1.0 / scale), 0.5 * math.exp(-1.0 / scale))]

    def payoff(x: float) -> float:
        inner = quad(
            lambda y: max(0.0, 0.5 * (x + ratio(y)) - kappa) * math.exp(-y / scale) / (2.0 * scale),
            0.0,
            1.0,
            points=[0.5 + 0.5 * scale * math.log(2.0 * kappa - x)] if 2.0 * kappa - x > 0.3 else None,
            limit=200,
        )[0]
        return float(inner + sum(p * max(0.0, 0.5 * (x + v) - kappa) for v, p in atoms))

    density = quad(lambda y: payoff(ratio(y)) * math.exp(-y / scale) / (2.0 * scale), 0.0, 1.0, limit=200)[0]
    truth = density + sum(p * payoff(v) for v, p in atoms)
    bracket = mean_of(LaplaceStep(scale).ratio(RES), 2, RES)
    assert delta_lower(bracket.lower, 0.4, "remove") <= truth + 1e-8
    assert truth - 1e-8 <= delta_upper(bracket.upper, 0.4, "remove")
    assert delta_upper(bracket.upper, 0.4, "remove") == pytest.approx(truth, rel=5e-3)


@pytest.mark.parametrize("steps", [2, 13, 100])
@pytest.mark.parametrize("local_epsilon", [0.5, 2.0])
def test_allocated_responses_agree_with_the_binomial_law(local_epsilon: float, steps: int) -> None:
    """The ratio is a function of the number of steps with one of the two answers."""
    low, high = math.exp(-local_epsilon), math.exp(local_epsilon)
    count = np.arange(steps + 1)
    mass = binom.pmf(count, steps, low / (1.0 + low))
    ratio = (count * high + (steps - count) * low) / steps
    bracket: RatioBracket = mean_of(ResponseStep(local_epsilon).ratio(RES), steps, RES)
    for epsilon in (-0.3, 0.0, 0.2, 0.6):
        kappa = math.exp(epsilon)
        remove = float(mass @ np.maximum(ratio - kappa, 0.0))
        add = float(mass @ np.maximum(1.0 - kappa * ratio, 0.0))
        for truth, direction in ((remove, "remove"), (add, "add")):
            assert delta_lower(bracket.lower, epsilon, direction) <= truth + 1e-13
            assert truth - 1e-13 <= delta_upper(bracket.upper, epsilon, direction)
            assert delta_upper(bracket.upper, epsilon, direction) <= 1.05 * truth + 1e-12


def test_public_gaussian_steps_are_one_gaussian_step_of_less_noise() -> None:
    composed, direct = GaussianStep(3.0).composed(9, RES), GaussianStep(1.0).ratio(RES)
    np.testing.assert_array_equal(composed.upper.x, direct.upper.x)


def test_equal_steps_share_cached_laws_and_different_kinds_never_do() -> None:
    assert GaussianStep(1.0) == GaussianStep(1.0)
    assert len({GaussianStep(1.0), LaplaceStep(1.0), ResponseStep(1.0), GaussianStep(2.0)}) == 4
