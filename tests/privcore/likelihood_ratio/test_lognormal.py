"""Cells of the lognormal distribution against 50-digit arithmetic."""

import mpmath
import numpy as np
import pytest

from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.lognormal import lognormal, lognormal_cells
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.numerics.gaussian import gaussian_delta_bounds


def exact_cell(s: float, left: float, right: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return mass and moment about the left end of exp(sZ - s^2/2) in [left, right)."""
    with mpmath.workdps(150):
        s, left, right = mpmath.mpf(s), mpmath.mpf(left), mpmath.mpf(right)

        def tail(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(z / mpmath.sqrt(2)) / 2

        a, b = ((mpmath.log(x) / s + s / 2) if x > 0 else -mpmath.inf for x in (left, right))
        mass = tail(a) - tail(b)
        return mass, (tail(a - s) - tail(b - s)) - left * mass


@pytest.mark.parametrize("s", [0.05, 0.5, 1.0, 3.3, 8.0])
@pytest.mark.parametrize("fineness", [0.2, 0.02])
def test_inner_cells_have_their_mass_and_moment_to_the_stated_error(s: float, fineness: float) -> None:
    bracket = lognormal(s, Resolution(fineness=fineness, tail=1e-20))
    edges = np.concatenate(([0.0], bracket.upper.x[bracket.upper.x > 0.0]))
    mass, moment, error = lognormal_cells(s, edges)
    assert error < 1e-10
    for k in range(1, edges.size - 1, max(1, edges.size // 40)):
        exact_mass, exact_moment = exact_cell(s, edges[k], edges[k + 1])
        assert abs(mass[k] / exact_mass - 1) <= error
        width = float(edges[k + 1] - edges[k])
        # relative to the width of the cell, plus the rounding of its ends relative to their size
        assert abs(moment[k] - exact_moment) <= error * exact_mass * (width + edges[k + 1])


@pytest.mark.parametrize("s", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.2, 2.0, 6.0])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_step_encloses_the_gaussian_mechanism(s: float, epsilon: float, direction: str) -> None:
    bracket = lognormal(s, Resolution(fineness=0.05, tail=1e-25))
    lower, upper = gaussian_delta_bounds(1.0 / s, epsilon)
    assert delta_lower(bracket.lower, epsilon, direction) <= upper
    assert lower <= delta_upper(bracket.upper, epsilon, direction)
