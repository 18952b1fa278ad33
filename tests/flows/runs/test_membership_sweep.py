"""A sweep over membership tests on training runs, from its text to stored brackets."""

from pathlib import Path

from flows.spec.grid import expand
from flows.spec.sweep import parse
from storage import open_store
from tests.flows.small_store import store_of

SWEEP = """
name = "tests-on-runs"
title = "Membership tests on one run"

[[grid]]
problem = "run-tpr"
methods = ["runs.curves"]

[grid.product]
phases = ["poisson(sigma=1,sampling_probability=0.01,steps=100)", "none(sigma=10,steps=20)"]
adjacency = ["add-remove"]
false_positive_rate = [0.001, 0.01]

[[grid]]
problem = "run-mu"
methods = ["runs.curves"]

[grid.product]
phases = ["poisson(sigma=1,sampling_probability=0.01,steps=100)"]
adjacency = ["add-remove"]
smallest_false_positive_rate = [1e-6, 1e-3]
"""


def test_the_points_of_a_sweep_are_stored_as_brackets_that_sql_reads(tmp_path: Path) -> None:
    points = list(expand(parse(SWEEP.encode(), "sweep.toml").grids))
    query = "SELECT {}, lower, upper FROM best WHERE problem = '{}' ORDER BY ALL"
    with open_store(store_of(tmp_path / "store", points)) as store:
        rates = store.sql(query.format("false_positive_rate", "run-tpr")).to_pylist()
        small, large = store.sql(query.format("smallest_false_positive_rate", "run-mu")).to_pylist()
    assert len(rates) == 4
    assert all(
        row["false_positive_rate"] < row["lower"] <= row["upper"] < 1.01 * row["lower"] for row in rates
    )
    assert small["smallest_false_positive_rate"] < large["smallest_false_positive_rate"]
    assert large["lower"] <= large["upper"] < small["lower"] <= small["upper"]
