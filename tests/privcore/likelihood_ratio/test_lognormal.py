"""Cells of the lognormal distribution against 50-digit arithmetic."""

import mpmath
import numpy as np
import pytest

from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.profile import delta_lower, delta_upper
from privcore.likelihood_ratio.steps import lognormal, lognormal_cells
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


@pytest.mark.parametrize("s", [1.2e-8, 3e-4, 0.06, 1.0, 9.0])
@pytest.mark.parametrize("tail", [1e-6, 1e-20, 1e-55])
def test_the_cells_at_the_ends_have_their_mass_and_moment_to_the_stated_error(s: float, tail: float) -> None:
    bracket = lognormal(s, Resolution(fineness=0.1, tail=tail))
    edges = np.concatenate(([0.0], bracket.upper.x[bracket.upper.x > 0.0]))
    mass, moment, error = lognormal_cells(s, edges)
    assert error < 1e-10
    for k, ends in ((0, (0.0, edges[1])), (-1, (edges[-1], mpmath.inf))):
        exact_mass, exact_moment = exact_cell(s, *ends)
        assert abs(mass[k] / exact_mass - 1) <= error
        assert abs(moment[k] / exact_moment - 1) <= error


@pytest.mark.parametrize(("s", "last"), [(9.0, 9.5), (9.0, 4.0), (30.0, -1.0), (0.5, -2.0), (20.0, 20.0)])
def test_the_moment_beyond_any_edge_is_that_of_the_distribution(s: float, last: float) -> None:
    edge = float(np.exp(s * last - 0.5 * s * s))
    _, moment, error = lognormal_cells(s, np.array([0.0, 0.5 * edge, edge]))
    assert abs(moment[-1] / exact_cell(s, edge, mpmath.inf)[1] - 1) <= error


@pytest.mark.parametrize("s", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.2, 2.0, 6.0])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_one_step_encloses_the_gaussian_mechanism(s: float, epsilon: float, direction: str) -> None:
    bracket = lognormal(s, Resolution(fineness=0.05, tail=1e-25))
    lower, upper = gaussian_delta_bounds(1.0 / s, epsilon)
    assert delta_lower(bracket.lower, epsilon, direction) <= upper
    assert lower <= delta_upper(bracket.upper, epsilon, direction)
