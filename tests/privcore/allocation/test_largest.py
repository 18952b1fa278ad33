"""Test on the largest output: equal to published values, below the truth, exact for one step."""

import csv
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from privcore import Answer, Point, evaluate, find
from privcore.allocation.sums import log_exceedances, log_powers
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "allocation.csv"


def answer(name: str, **fields: object) -> Answer:
    return evaluate(Point(problem=problem(name, **fields), method=find("allocation.largest")()))


def all_below(cut: mp.mpf, mean: mp.mpf, count: int) -> mp.mpf:
    """Return the probability that `count` normal variables of unit variance stay below the cut."""
    return (mp.erfc(-(cut - mean) / mp.sqrt(2)) / 2) ** count


def test_published_values_are_met_as_printed() -> None:
    with TABLE.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["group"] == "H"]
    assert len(rows) == 4
    for row in rows:
        fields = {"sigma": float(row["sigma"]), "steps": int(row["t"]), "epsilon": float(row["eps_in"])}
        lower = answer("allocation-delta", **fields, adjacency="remove").lower
        half_unit = 0.5 * 10.0 ** (1 - int(row["digits"]))
        assert lower == pytest.approx(float(row["value"]), rel=half_unit), row


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_one_step_gives_back_the_gaussian_from_below(sigma: float, adjacency: str) -> None:
    for delta in (1e-300, 1e-12, 1e-3):
        exact = gaussian_epsilon_bounds(sigma, delta)
        lower = answer("allocation-epsilon", sigma=sigma, steps=1, delta=delta, adjacency=adjacency).lower
        assert exact[0] * (1.0 - 1e-7) <= lower <= exact[1]
    for epsilon in (-3.0, 0.0, 1e-9, 0.7):
        exact = gaussian_delta_bounds(sigma, epsilon)
        lower = answer("allocation-delta", sigma=sigma, steps=1, epsilon=epsilon, adjacency=adjacency).lower
        assert exact[0] * (1.0 - 1e-7) <= lower <= exact[1]


def log_all_below(cut: float, mean: float, count: int) -> mp.mpf:
    """Return the logarithm of `all_below`, accurate also if it is nearly 0."""
    x = (mp.mpf(cut) - mp.mpf(mean)) / mp.sqrt(2)
    return count * (mp.log(mp.erfc(-x) / 2) if x < 0 else mp.log1p(-mp.erfc(x) / 2)) if count else mp.mpf(0)


def test_probabilities_are_rounded_outwards_everywhere() -> None:
    """Thresholds from deep in the lower tail to deep in the upper tail, with enough digits."""
    cuts = np.linspace(-31.0, 37.0, 69)
    for mean, chosen, count in ((1.0, 1, 1), (0.3, 2, 10**9), (20.0, 10**6, 10**12), (1e-6, 5, 10)):
        rest = ((count - chosen, 0.0),) if count > chosen else ()
        with_example, without = ((chosen, mean), *rest), ((count, 0.0),)
        for direction in ("remove", "add"):
            log_p, log_q = log_powers(cuts, with_example, without, direction)
            for cut, low, high in zip(cuts, log_p, log_q, strict=True):
                with mp.workdps(60):
                    none = log_all_below(cut, mean, chosen) + log_all_below(cut, 0.0, count - chosen)
                    blank = log_all_below(cut, 0.0, count)
                    log_some = [mp.log(-mp.expm1(x)) for x in (none, blank)]
                    p, q = log_some if direction == "remove" else (blank, none)
                    for got, exact, side in ((low, p, 1), (high, q, -1)):
                        gap = side * (exact - mp.mpf(float(got)))
                        assert 0 <= gap <= 1e-11 * max(1, abs(exact)), (mean, count, direction, cut)


def test_the_far_tail_keeps_its_logarithm() -> None:
    """At 1000 standard deviations ln of the tail is -x^2/2 - ln(x sqrt(2 pi)), to 1/x^2."""
    found = float(log_exceedances(np.array([1000.0]), ((7, 0.0),), 1)[0])
    assert found == pytest.approx(math.log(7.0) - 5e5 - math.log(1000.0 * math.sqrt(2.0 * math.pi)), abs=2e-6)


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_the_two_problems_agree(adjacency: str) -> None:
    """At the lower end of epsilon for delta, some test gives that delta as a lower end."""
    for sigma, steps, k, epochs, delta in (
        (0.5, 100, 1, 1, 1e-6),
        (1.0, 50, 3, 7, 1e-4),
        (0.2, 10**6, 1, 1, 1e-9),
    ):
        fields = {
            "sigma": sigma,
            "steps": steps,
            "participations": k,
            "epochs": epochs,
            "adjacency": adjacency,
        }
        epsilon = answer("allocation-epsilon", **fields, delta=delta).lower
        assert epsilon > 0.0
        assert answer("allocation-delta", **fields, epsilon=epsilon).lower == pytest.approx(delta, rel=1e-5)


def test_no_threshold_of_a_fine_scan_is_better() -> None:
    sigma, steps, k, epochs, delta = 0.7, 30, 2, 3, 1e-5
    with mp.workdps(30):
        s = 1 / mp.mpf(sigma)
        for adjacency in ("remove", "add"):
            found = answer(
                "allocation-epsilon",
                sigma=sigma,
                steps=steps,
                participations=k,
                epochs=epochs,
                delta=delta,
                adjacency=adjacency,
            ).lower
            best = mp.mpf(0)
            for m in (1, 3):
                for i in range(-300, 1200):
                    cut = mp.mpf(i) / 100
                    none = all_below(cut, s, k * m) * all_below(cut, mp.mpf(0), (steps - k) * m)
                    blank = all_below(cut, mp.mpf(0), steps * m)
                    p, q = (1 - none, 1 - blank) if adjacency == "remove" else (blank, none)
                    if p > delta:
                        best = max(best, mp.log((p - delta) / q))
            assert best * (1 - mp.mpf("1e-12")) <= found <= best * (1 + mp.mpf("1e-3"))


def test_it_is_nearly_the_truth_for_little_noise() -> None:
    """Exact values by contour integration in extended precision, 12 digits; within 0.1 % up to sigma 0.5."""
    for sigma, steps, delta, exact in (
        (0.3, 100, 1e-4, 12.6790047401),
        (0.2, 1000, 1e-7, 30.9051958777),
        (0.5, 10**4, 1e-6, 1.94188072745),
    ):
        lower = answer("allocation-epsilon", sigma=sigma, steps=steps, delta=delta).lower
        assert exact * 0.999 <= lower <= exact * (1.0 + 5e-12)


def test_more_participations_or_epochs_show_no_less() -> None:
    base = {"sigma": 0.6, "steps": 20, "delta": 1e-5}
    one = answer("allocation-epsilon", **base).lower
    assert answer("allocation-epsilon", **base, participations=3).lower > one
    assert answer("allocation-epsilon", **base, epochs=4).lower > one


def test_the_trivial_bound_is_always_there() -> None:
    """For negative epsilon any mechanism has delta at least 1 - e^epsilon."""
    lower = answer("allocation-delta", sigma=1e6, steps=10**9, epsilon=-0.5).lower
    assert lower == pytest.approx(-math.expm1(-0.5), rel=1e-12)
    assert lower <= -math.expm1(-0.5)
    assert answer("allocation-delta", sigma=1e6, steps=10**9, epsilon=0.5).lower == 0.0
