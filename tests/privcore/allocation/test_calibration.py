"""Least noise multiplier: both ends proved, the upper end safe, independent computations between them."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from privcore import Answer, DomainError, Point, Problem, evaluate, find
from privcore.allocation.calibration import gaussian_noise, outer_noise, smallest_noise
from privcore.numerics.bracket_search import BracketSearch
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "allocation.csv"
BUDGETS = [(0.1, 1e-10), (1.0, 1e-6), (8.0, 1e-2)]
each_scheme = pytest.mark.parametrize("scheme", ["allocation", "poisson"])


def at(scheme: str, sigma: float, steps: int, delta: float) -> Problem:
    """Return the epsilon problem at this noise multiplier."""
    if scheme == "allocation":
        return problem("allocation-epsilon", sigma=sigma, steps=steps, delta=delta)
    rate = {"sampling_probability": 1.0 / steps}
    return problem("poisson-epsilon", sigma=sigma, steps=steps, delta=delta, **rate)


@each_scheme
@pytest.mark.parametrize("steps", [2, 37, 1000])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_a_fresh_bracket_proves_that_the_upper_end_suffices_and_the_lower_does_not(
    scheme: str, steps: int, epsilon: float, delta: float
) -> None:
    noise = smallest_noise(scheme, epsilon=epsilon, delta=delta, steps=steps, precision=0.01)
    assert noise.upper <= noise.lower * 1.01001
    method = find(f"{scheme}.certified").from_knobs({"tolerance": 1e-3})
    enough = evaluate(Point(problem=at(scheme, noise.upper, steps, delta), method=method))
    short = evaluate(Point(problem=at(scheme, noise.lower, steps, delta), method=method))
    assert enough.lower <= epsilon * 0.9999, "the safe end is on the safe side"
    assert short.upper > epsilon


@pytest.mark.parametrize("precision", [0.1, 1e-3])
def test_the_ends_are_as_near_as_asked(precision: float) -> None:
    noise = smallest_noise("allocation", epsilon=1.0, delta=1e-6, steps=100, precision=precision)
    assert noise.lower * (1.0 + 0.01 * precision) < noise.upper <= noise.lower * (1.0 + 1.001 * precision)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-5), (1.0, 1e-5), (4.0, 1e-100), (50.0, 0.3)])
def test_one_step_needs_the_noise_of_the_gaussian_mechanism(epsilon: float, delta: float) -> None:
    with mp.workdps(40):

        def excess(sigma: mp.mpf) -> mp.mpf:
            a = epsilon * sigma - 1 / (2 * sigma)
            return mp.log(mp.ncdf(-a) - mp.exp(epsilon) * mp.ncdf(-a - 1 / sigma)) - mp.log(delta)

        around = gaussian_noise(epsilon, delta).upper
        truth = mp.findroot(excess, (0.99 * around, 1.01 * around), solver="anderson", tol=1e-25)
        for scheme in ("allocation", "poisson"):
            noise = smallest_noise(scheme, epsilon=epsilon, delta=delta, steps=1)
            assert noise.lower < truth < noise.upper
            assert noise.upper <= noise.lower * (1.0 + 3e-12)


def two_step_delta(scheme: str, sigma: float, epsilon: float) -> float:
    """Return delta of two steps in the worse direction, by quadrature over the first output.

    The ratio is (X + Y)/2 for allocation and (1 + X)(1 + Y)/4 for Poisson sampling at rate 1/2: both are
    u + v Y given X, with Y lognormal, so the inner expectation is that of Black and Scholes.
    """
    s, kappa = 1.0 / sigma, math.exp(epsilon)

    def call(strike: float) -> float:
        if strike <= 0.0:
            return 1.0 - strike
        d = (0.5 * s * s - math.log(strike)) / s
        return float(ndtr(d) - strike * ndtr(d - s))

    def parts(z: float) -> tuple[float, float]:
        x = math.exp(s * z - 0.5 * s * s)
        return (0.5 * x, 0.5) if scheme == "allocation" else (0.25 * (1.0 + x), 0.25 * (1.0 + x))

    def remove(z: float) -> float:
        u, v = parts(z)
        return v * call((kappa - u) / v)

    def add(z: float) -> float:
        u, v = parts(z)
        strike = (1.0 / kappa - u) / v
        return kappa * v * (call(strike) - 1.0 + strike) if strike > 0.0 else 0.0

    def mean(f: object) -> float:
        assert callable(f)
        density = lambda z: f(z) * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return float(quad(density, -10.0, 10.0 + s, points=[0.0, s], limit=400, epsabs=0.0)[0])

    return max(mean(remove), mean(add))


@each_scheme
@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 0.5), (0.5, 3.0), (3.0, 0.3), (20.0, 0.05)])
def test_two_steps_need_the_noise_that_quadrature_gives(scheme: str, sigma: float, epsilon: float) -> None:
    delta = two_step_delta(scheme, sigma, epsilon)
    assert 1e-6 < delta < 0.2
    noise = smallest_noise(scheme, epsilon=epsilon, delta=delta, steps=2, precision=1e-3)
    assert noise.lower < sigma < noise.upper
    assert noise.upper <= noise.lower * 1.00101


def exact_rows() -> list[dict[str, str]]:
    """Return the rows whose exact epsilon or delta makes their sigma the least noise."""
    with TABLE.open() as lines:
        rows = [
            row
            for row in csv.DictReader(lines)
            if row["kind"] == "exact" and row["direction"] == "remove" and row["k"] == row["epochs"] == "1"
        ]
    return [
        row
        for row in rows
        if (row["method"] == "allocation" or (row["lam"] and float(row["lam"]) * int(row["t"]) == 1.0))
        and float(row["value"] if row["quantity"] == "eps" else row["eps_in"]) >= 1e-3
        and int(row["digits"]) >= 5
    ]


@pytest.mark.thorough
def test_the_noise_of_the_reference_table_is_enclosed() -> None:
    rows = exact_rows()
    assert len(rows) >= 30
    assert {row["method"] for row in rows} == {"allocation", "poisson"}
    for row in rows:
        given = row["quantity"] == "eps"
        epsilon = float(row["value"] if given else row["eps_in"])
        delta = float(row["delta_in"] if given else row["value"])
        noise = smallest_noise(
            row["method"], epsilon=epsilon, delta=delta, steps=int(row["t"]), precision=0.05
        )
        assert noise.lower < float(row["sigma"]) * (1.0 + 1e-9), row
        assert noise.upper > float(row["sigma"]) * (1.0 - 1e-9), row
        assert noise.upper <= noise.lower * 1.0501, row


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_allocation_needs_less_noise_than_one_step_and_a_sum_as_noisy_as_that_step(
    epsilon: float, delta: float
) -> None:
    single = gaussian_noise(epsilon, delta)
    before = single.lower
    for steps in (2, 6, 60, 600):
        noise = smallest_noise("allocation", epsilon=epsilon, delta=delta, steps=steps, precision=0.01)
        assert noise.lower <= single.upper
        assert math.sqrt(steps) * noise.upper >= single.lower
        assert math.sqrt(steps) * noise.upper >= before, "t sigma^2 grows along multiples of t"
        before = math.sqrt(steps) * noise.lower


@each_scheme
def test_a_larger_budget_needs_no_more_noise(scheme: str) -> None:
    budgets = [(epsilon, delta) for epsilon in (0.05, 0.5, 5.0) for delta in (1e-9, 1e-5, 1e-1)]
    found = {
        (epsilon, delta): smallest_noise(scheme, epsilon=epsilon, delta=delta, steps=50, precision=0.02)
        for epsilon, delta in budgets
    }
    for (epsilon, delta), noise in found.items():
        for (more, larger), other in found.items():
            if (more > epsilon and larger >= delta) or (more >= epsilon and larger > delta):
                assert other.upper < noise.lower


@pytest.mark.parametrize("steps", [3, 10, 1000])
def test_poisson_sampling_needs_more_noise_than_allocation_here(steps: int) -> None:
    """Not a theorem, but the reason why the trade-off of Figure 3 disappears with tight accounting."""
    allocation, poisson = (
        smallest_noise(scheme, epsilon=1.0, delta=1e-10, steps=steps, precision=1e-3)
        for scheme in ("allocation", "poisson")
    )
    assert allocation.upper < poisson.lower


@each_scheme
@pytest.mark.parametrize("steps", [2, 1000, 10**9])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-300), (1e-3, 1e-250), (1e4, 1e-5), (1e3, 0.999)])
def test_extreme_budgets_get_valid_ends(scheme: str, steps: int, epsilon: float, delta: float) -> None:
    noise = smallest_noise(scheme, epsilon=epsilon, delta=delta, steps=steps, precision=0.1)
    outer = outer_noise(scheme, epsilon, delta, steps)
    assert outer.lower <= noise.lower < noise.upper <= outer.upper < math.inf


def test_noise_beyond_the_search_has_an_open_end() -> None:
    assert gaussian_noise(1e-3, 1e-300).upper < 1e6
    assert gaussian_noise(0.0, 1e-20) == Answer.at_least(1e12)
    assert smallest_noise("allocation", epsilon=1e4, delta=1.0 - 1e-16, steps=1).upper < 0.01


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epsilon": 0.0}, r"Expected epsilon in \[0.001, 10000\], got epsilon=0.0"),
        ({"epsilon": math.nan}, "Expected epsilon in "),
        ({"delta": 0.0}, r"Expected delta in \(0, 1\), got delta=0.0"),
        ({"steps": 0}, "Expected steps in "),
        ({"precision": 0.0}, "Expected precision > 0, got 0.0"),
        ({"precision": math.nan}, "Expected precision > 0, got nan"),
    ],
)
def test_a_budget_outside_its_domain_is_refused(fields: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        smallest_noise("allocation", **({"epsilon": 1.0, "delta": 1e-5, "steps": 10} | fields))  # type: ignore[arg-type]
    assert issubclass(DomainError, ValueError)


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected scheme in"):
        smallest_noise("shuffling", epsilon=1.0, delta=1e-5, steps=10)


@pytest.mark.parametrize("domain", [(1e-3, 1e6), (0.5, 3.0), (1.9, 2.1)])
def test_the_search_ends_with_the_root_between_two_neighbours(domain: tuple[float, float]) -> None:
    look = lambda place, width: (4.0 / place**2 * (1.0 - width), 4.0 / place**2 * (1.0 + 0.3 * width))
    enough, short = BracketSearch(look=look, target=1.0, precision=1e-3, domain=domain).run()
    assert enough is not None
    assert short is not None
    assert short.at < 2.0 <= enough.at <= 1.001 * short.at


def test_a_search_stops_after_as_many_brackets_as_it_may_use() -> None:
    never = BracketSearch(
        look=lambda *_: (0.0, math.inf), target=1.0, precision=1e-3, domain=(1.0, 2.0), most=7
    )
    assert never.run() == (None, None)
    assert 1 <= len(never.trials) <= 7


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_ends_of_the_gaussian_mechanism_are_moved_outward_by_the_root_of_the_steps(
    epsilon: float, delta: float
) -> None:
    """In exact arithmetic: half of all roots, products and quotients are rounded to the wrong side."""
    single = gaussian_noise(epsilon, delta)
    for steps in range(2, 200):
        allocation, poisson = (outer_noise(s, epsilon, delta, steps) for s in ("allocation", "poisson"))
        assert Fraction(allocation.lower) ** 2 * steps <= Fraction(single.lower) ** 2
        assert Fraction(poisson.upper) ** 2 >= Fraction(single.upper) ** 2 * steps
