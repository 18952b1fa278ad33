"""Bounds that other packages print for random allocation: ours are as tight, and do not contradict them.

`data/packages.csv` has the output of random-allocation 1.0.5 and PLD-accounting 2.0; `make bench` runs them
again. The column objection has the reason why a value is not compared.
"""

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path

import mpmath as mp
import pytest

from privcore import Answer, Point, Problem, evaluate, find
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "packages.csv"
LOOSER = 1.005

pytestmark = pytest.mark.xdist_group("packages")  # our brackets are computed once

Row = dict[str, str]


def rows() -> list[Row]:
    with TABLE.open() as lines:
        return [row for row in csv.DictReader(lines) if not row["objection"]]


def question(row: Row) -> Problem:
    asked = {"eps": "epsilon", "delta": "delta"}[row["quantity"]]
    given = {"epsilon": float(row["eps_in"])} if row["eps_in"] else {"delta": float(row["delta_in"])}
    return problem(
        f"allocation-{asked}",
        sigma=float(row["sigma"]),
        steps=int(row["t"]),
        participations=int(row["k"]),
        epochs=int(row["epochs"]),
        adjacency="add-remove" if row["direction"] == "both" else row["direction"],
        **given,
    )


@cache
def ours() -> dict[Problem, tuple[Answer, list[Row]]]:
    by_problem: dict[Problem, list[Row]] = defaultdict(list)
    for row in rows():
        by_problem[question(row)].append(row)
    method = find("allocation.certified").from_knobs({"tolerance": 1e-3})
    return {
        asked: (evaluate(Point(problem=asked, method=method)), found) for asked, found in by_problem.items()
    }


@pytest.mark.thorough
@pytest.mark.parametrize("bound", ["upper", "lower"])
def test_our_bracket_is_as_tight_as_the_tightest_of_the_packages_and_contradicts_none(bound: str) -> None:
    compared = 0
    for asked, (answer, found) in ours().items():
        values = [float(row["value"]) for row in found if row["bound"] == bound]
        compared += len(values)
        if bound == "upper" and values:
            assert answer.upper <= LOOSER * min(values), asked
            assert answer.lower <= min(values), asked
        elif values:
            assert answer.upper >= max(values), asked
    assert compared > {"upper": 90, "lower": 18}[bound]


def test_a_poisson_value_of_random_allocation_is_below_the_truth() -> None:
    """Claim of docs/benchmarks.md on figure 1: at its epsilon the largest output gives more than delta."""
    with mp.workdps(40):
        sigma, t = mp.mpf("0.2") * mp.mpf(10) ** (mp.mpf(5) / 19), 10**6

        def below(x: mp.mpf) -> mp.mpf:
            return mp.erfc(-x / sigma / mp.sqrt(2)) / 2

        cut = mp.mpf("3.23")
        some_with = 1 - (below(cut) + (below(cut - 1) - below(cut)) / t) ** t
        some_without = 1 - below(cut) ** t
        assert some_with - mp.exp(mp.mpf("6.49")) * some_without > 1.8e-10
