"""No adversary of a search is above the upper end of a shuffled epoch; add-remove encloses the best one."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from privcore import Point, evaluate, find
from tests.privcore.data.shuffled_adversaries import WIDTHS, divergence
from tests.privcore.draws import problem

DATA = Path(__file__).parents[1] / "data" / "shuffled_adversaries.csv"
ROWS = list(csv.DictReader(DATA.read_text(encoding="utf-8").splitlines()))
GRID_ERROR = 1e-3
"""Relative error of the sum over the grid, at most."""


def named(row: dict[str, str]) -> str:
    return "-".join(list(row.values())[:5])


def bracket(row: dict[str, str]) -> tuple[float, float]:
    """Both ends of delta for a row of the data."""
    steps, relation = int(row["steps"]), row["relation"]
    word = {"replace-one": relation, "add-remove": row["direction"]}.get(
        relation, f"zero-out-{row['direction']}"
    )
    fields = f"sigma={row['sigma']},steps={steps},redraw=each-epoch,dropped={1 / (steps + 1)!r}"
    asked = problem("run-delta", phases=f"shuffling({fields})", adjacency=word, epsilon=float(row["epsilon"]))
    answer = evaluate(Point(problem=asked, method=find("runs.certified")()))
    assert answer.ok, answer
    return answer.lower, answer.upper


@pytest.mark.thorough
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_no_adversary_of_the_search_is_above_the_upper_end(row: dict[str, str]) -> None:
    lower, upper = bracket(row)
    found = float(row["divergence"])
    assert found <= upper * (1.0 + GRID_ERROR)
    assert found >= 0.6 * upper, "the search found less than others did"
    if row["relation"] == "add-remove":
        assert lower <= found * (1.0 + GRID_ERROR), "the best others are the opposite of the example"


def test_the_data_have_enough_settings_of_every_kind() -> None:
    assert len(ROWS) >= 40
    kinds = {(row["steps"], row["relation"], row["direction"]) for row in ROWS}
    assert len(kinds) == 12


@pytest.mark.parametrize("row", [row for row in ROWS if row["steps"] == "2"][::3], ids=named)
def test_the_adversaries_have_the_divergence_of_the_data(row: dict[str, str]) -> None:
    numbers = float(row["sigma"]), float(row["epsilon"])
    policy = np.array(json.loads(row["policy"]))
    found = divergence(2, *numbers, row["relation"], row["direction"], policy, WIDTHS[2])
    assert found == pytest.approx(float(row["divergence"]), rel=1e-5)
