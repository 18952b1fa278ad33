"""Functions of the engine of the page against ball arithmetic: each error is below its bound."""

import json
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from flint import arb, ctx
from selenium import webdriver

from tests.flows.page.browser import call
from tests.privcore.numerics import balls

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

APPLIED = """
    const [file, name, points] = given;
    const module = await load(file);
    return JSON.stringify(points.map((point) => module[name](...point)));
"""
CELLS = """
    const { lognormal, reachOf } = await load("engine/distribution.js");
    const { placesOf } = await load("engine/evaluate.js");
    const reach = reachOf(1e-12);
    return given.map(([s, width]) => {
      const places = placesOf({ s }, reach, (z) => width * (1 + (z * z) / 20));
      const upper = lognormal(s, places, reach, true);
      const lower = lognormal(s, places, reach, false);
      return [...[places, upper.values, upper.masses, lower.values, lower.masses].map((each) => [...each]),
              upper.massError, upper.valueError, lower.massError, lower.valueError];
    });
"""
UNIT = 2.0**-53
STEP = 8192  # cells of the normal variable are multiples of 1 / STEP


@pytest.fixture(autouse=True)
def enough_bits() -> Iterator[None]:
    """Balls with many more bits than doubles."""
    with ctx.workprec(balls.PRECISION):
        yield


def applied(browser: webdriver.Chrome, file: str, name: str, points: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return each point, a number or a tuple, with the value of a function of the engine."""
    listed = [point if isinstance(point, tuple) else (point,) for point in points]
    found = json.loads(call(browser, APPLIED, f"engine/{file}", name, listed))
    return list(zip(points, found, strict=True))


def drawn(seed: int, count: int, least: float, most: float) -> list[float]:
    rng = random.Random(seed)
    return [
        math.copysign(math.exp(rng.uniform(math.log(least), math.log(most))), rng.choice((-1, 1)))
        for _ in range(count)
    ]


def test_elementary_functions_err_by_at_most_four_units(at_page: webdriver.Chrome) -> None:
    ends = [1e-300, 1e-17, 0.34, math.nextafter(0.34, 1.0), 0.3465735902799726, 0.35, 1.0, 36.7, 690.0]
    points = [x for end in ends for x in (end, -end)] + drawn(1, 1500, 1e-17, 690.0)
    slack = 4.0 * UNIT
    for name in ("exp", "expm1"):
        for x, found in applied(at_page, "elementary.js", name, points):
            truth = arb(x).exp() if name == "exp" else arb(x).expm1()
            assert balls.near(found, truth, slack * abs(found)), (name, x)
    positive = [abs(x) for x in drawn(2, 1500, 1e-300, 1e300)] + [1.0 + x for x in drawn(3, 1500, 1e-15, 0.4)]
    positive += [5e-324, 2.3e-308, math.sqrt(2.0), math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)]
    for x, found in applied(at_page, "elementary.js", "log", positive):
        assert balls.near(found, arb(x).log(), slack * abs(found)), x
    assert applied(at_page, "elementary.js", "log", [1.0]) == [(1.0, 0)]


def test_the_normal_density_errs_by_at_most_ten_units(at_page: webdriver.Chrome) -> None:
    points = [*drawn(4, 1000, 1e-6, 37.0), 0.0, 37.0, -37.0]
    for z, found in applied(at_page, "quadrature.js", "density", points):
        truth = (-arb(z) * arb(z) / 2).exp() / (2 * arb.pi()).sqrt()
        assert balls.moved(found, 10.0 * UNIT, truth), z


def test_brackets_of_the_gaussian_profile_enclose_it(at_page: webdriver.Chrome) -> None:
    points = [(mu, epsilon) for mu, epsilon in balls.spread(5, 150, (1e-6, 50.0), (1e-8, 100.0))]
    points += [(mu, -min(epsilon, 5.0)) for mu, epsilon in balls.spread(6, 50, (1e-3, 10.0), (1e-3, 5.0))]
    narrow = 0
    for (mu, epsilon), found in applied(at_page, "gaussian.js", "gaussianDelta", points):

        def truth(mu: float = mu, epsilon: float = epsilon) -> arb:
            m, e = arb(mu), arb(epsilon)
            return balls.normal(m / 2 - e / m) - e.exp() * balls.normal(-m / 2 - e / m)

        if epsilon / mu - mu / 2 > 36.0:
            assert found["lower"] <= found["upper"] < 1e-250
            continue
        delta = balls.sharpened(truth)
        assert balls.below(found["lower"], delta), (mu, epsilon)
        assert found["upper"] == 1 or balls.above(found["upper"], delta), (mu, epsilon)
        narrow += found["upper"] <= found["lower"] * (1.0 + 1e-10)
    assert narrow > 100


def test_cells_of_a_lognormal_ratio_err_by_less_than_their_bounds(at_page: webdriver.Chrome) -> None:
    cases = [(1.0, 0.1), (2.0**-20, 0.05), (0.25, 0.6), (5.0, 0.1), (17.0, 0.3), (1.5, 0.004)]
    rng = random.Random(7)
    for (s, _), found in zip(cases, call(at_page, CELLS, *cases), strict=True):
        places, values, masses, means, weights, mass_error, value_error, lower_mass, lower_value = found
        ends = [arb(place) / STEP for place in places]
        n = len(means)
        for k in {0, n - 1, *(rng.randrange(n) for _ in range(25))}:
            left, right = ends[k], ends[k + 1]
            truth, shifted = _mass(left, right), _mass(left - arb(s), right - arb(s))
            assert balls.moved(weights[k], lower_mass, truth), (s, k)
            assert balls.moved(means[k], lower_value, shifted / truth), (s, k)
            assert balls.moved(values[k + 1], value_error, (arb(s) * left - arb(s) ** 2 / 2).exp()), (s, k)
            if k > 0:  # the mass at an edge comes from both neighbouring cells
                spread = _part(ends[k - 1], left, s, True) + _part(left, right, s, False)
                assert balls.moved(masses[k + 1], mass_error, spread), (s, k)


def _mass(left: arb, right: arb) -> arb:
    return (
        balls.normal(right) - balls.normal(left) if right <= 0 else balls.normal(-left) - balls.normal(-right)
    )


def _part(left: arb, right: arb, s: float, to_right: bool) -> arb:
    """Return the mass that a cell moves to one end if its mean is kept."""
    mass, mean = _mass(left, right), _mass(left - arb(s), right - arb(s))
    low, high = ((arb(s) * z - arb(s) ** 2 / 2).exp() for z in (left, right))
    return (mean - low * mass) / (high - low) if to_right else (high * mass - mean) / (high - low)


def test_powers_of_two_are_exact(at_page: webdriver.Chrome) -> None:
    for k, found in applied(at_page, "elementary.js", "power", range(-1022, 1024)):
        assert float(found) == 2.0**k


def test_exponents_lengths_and_cube_roots(at_page: webdriver.Chrome) -> None:
    points = [abs(x) for x in drawn(8, 500, 1e-307, 1e307)]
    ends = [x for k in range(-1021, 1024, 7) for x in (2.0**k, math.nextafter(2.0**k, 0.0))]
    for x, found in applied(at_page, "elementary.js", "exponent", points + ends):
        assert found == math.frexp(x)[1] - 1, x
    for x, found in applied(at_page, "elementary.js", "cubeRoot", [*points, 0.0]):
        assert found == pytest.approx(x ** (1 / 3), rel=1e-12, abs=0.0)
    pairs = [*zip(points, reversed(points), strict=True), (0.0, 0.0), (3e-200, 4e-200), (3e200, 4e200)]
    for (x, y), found in applied(at_page, "elementary.js", "length", pairs):
        assert found == pytest.approx(math.hypot(x, y), rel=1e-15, abs=0.0)
