"""Reference values of random allocation and its relatives lie between our bounds.

`data/allocation.csv` has values computed by other means than ours: closed forms, quadrature and contour
integrals in extended precision (kind exact), and bounds of the literature (kind upper or lower). Its column
digits is the number of significant digits of a value that can be trusted.

The text that came with the table gives 28.4684733 for sigma 0.2, 1e6 steps, delta 1e-10; the table has
29.8473933. The table is right: at an epsilon of 28.4684733 the test on the largest output alone proves a
delta of at least 5.7e-10.
"""

import csv
import math
from pathlib import Path

import mpmath as mp
import pytest

from privcore import METHODS, Direction, Method, Point, Problem, evaluate
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "allocation.csv"
RIGOROUS = [method for method in METHODS if method.direction is not Direction.ESTIMATE]

Row = dict[str, str]


def rows() -> list[Row]:
    with TABLE.open() as lines:
        return list(csv.DictReader(lines))


def question(row: Row) -> Problem:
    """Return the problem whose true value the row gives."""
    topic = {"local": "unamplified", "poisson": "poisson"}.get(row["method"], "allocation")
    fields = {
        "sigma": float(row["sigma"]),
        "steps": int(row["t"]),
        "epochs": int(row["epochs"]),
        "adjacency": "add-remove" if row["direction"] == "both" else row["direction"],
    }
    if topic == "poisson":
        fields["sampling_probability"] = float(row["lam"])
    else:
        fields["participations"] = int(row["k"])
        fields["steps"] = max(int(row["t"]), int(row["k"]))
    if row["quantity"] == "eps":
        return problem(f"{topic}-epsilon", delta=float(row["delta_in"]), **fields)
    return problem(f"{topic}-delta", epsilon=float(row["eps_in"]), **fields)


def half_unit(value: float, digits: int) -> float:
    """Return half a unit of the last trusted digit."""
    return 0.5 * 10.0 ** (math.floor(math.log10(value)) - digits + 1)


@pytest.mark.parametrize("method", RIGOROUS, ids=lambda method: method.name)
def test_bounds_lie_around_the_reference_values(method: type[Method]) -> None:
    check(method, 0.0, 0.5)


@pytest.mark.soak
@pytest.mark.parametrize("method", RIGOROUS, ids=lambda method: method.name)
def test_dear_bounds_lie_around_the_reference_values(method: type[Method]) -> None:
    check(method, 0.5, math.inf)


def check(method: type[Method], least: float, most: float) -> None:
    """Compare the rows whose declared cost in seconds is between two values."""
    wrong = []
    for row in rows():
        asked = question(row)
        if not isinstance(asked, method.problems) or method().applies(asked) is not None:
            continue
        if not least <= method().cost(asked).seconds < most:
            continue
        answer = evaluate(Point(problem=asked, method=method()))
        value = float(row["value"])
        slack = half_unit(value, int(row["digits"]))
        too_high = answer.lower > value + slack and row["kind"] in ("exact", "upper")
        too_low = answer.upper < value - slack and row["kind"] in ("exact", "lower")
        if too_high or too_low or not answer.ok:
            wrong.append((row, answer))
    assert not wrong


KINDS = {type(question(row)) for row in rows()}


@pytest.mark.parametrize(
    "method", [m for m in RIGOROUS if KINDS.intersection(m.problems)], ids=lambda method: method.name
)
def test_the_table_has_something_to_say_about_every_method(method: type[Method]) -> None:
    asked = [question(row) for row in rows()]
    assert any(isinstance(each, method.problems) and method().applies(each) is None for each in asked)


def largest_output_delta(sigma: str, steps: int, epsilon: str) -> mp.mpf:
    """Return the lower bound of delta, for remove, by the test on the largest of all outputs."""

    def below(x: mp.mpf) -> mp.mpf:
        return mp.erfc(-x / mp.mpf(sigma) / mp.sqrt(2)) / 2

    def delta(cut: mp.mpf) -> mp.mpf:
        rest = below(cut) ** (steps - 1)
        return 1 - below(cut - 1) * rest - mp.exp(mp.mpf(epsilon)) * (1 - rest * below(cut))

    return max(delta(mp.mpf(cut) / 100) for cut in range(100, 300))


def test_the_table_is_right_about_the_first_point_of_figure_1() -> None:
    with mp.workdps(40):
        assert largest_output_delta("0.2", 10**6, "28.4684733") > 5.7e-10
        at_the_row = largest_output_delta("0.2", 10**6, "29.8473933110557")
        assert 0.98e-10 < at_the_row < 1e-10
