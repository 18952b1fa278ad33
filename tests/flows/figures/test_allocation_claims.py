"""The numbers in docs/reproduction-allocation.md against the output of its queries on a new store."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.figures import papers
from privcore import Point, evaluate, find, find_problem
from tests.flows.support.claims import Claims, agree

CLAIMS = Claims("reproduction-allocation.md")
SWEEPS = papers.SWEEPS["allocation"]


def ends(method: str, problem: str, **fields: float | str) -> tuple[float, float]:
    found = evaluate(Point(problem=find_problem(problem).from_fields(fields), method=find(method)()))
    return found.lower, found.upper


def capped() -> list[float]:
    """Return both deltas; their ends agree to seven digits."""
    fields = {"local_epsilon": 1.0, "steps": 10, "sampling_probability": 0.2, "epsilon": 0.3}
    name = "capped-response-delta"
    return [
        ends("allocation.counts", name, **fields, largest_participations=k, adjacency="remove")[0]
        for k in (2, 10)
    ]


def divergences() -> list[float]:
    found = list(ends("allocation.renyi", "allocation-renyi", sigma=1.0, steps=100, renyi_order=3)[1:])
    for direction in ("remove", "add"):
        fields = {"sigma": 1.0, "steps": 2, "renyi_order": 2, "order_fraction": 0.5, "adjacency": direction}
        found += ends("allocation.renyi", "allocation-renyi", **fields)
    return found


def large_noise() -> list[float]:
    fields = {"sigma": 60.0, "steps": 1000, "delta": 1e-6}
    bound = ends("allocation.corollary", "allocation-epsilon", **fields)[1]
    truth = ends("allocation.certified", "allocation-epsilon", **fields)[1]
    return [bound / truth, 8.0 * math.sqrt(math.log(2.0 * 1000.0 / 1e-6))]


TESTS: dict[str, Callable[[], list[float]]] = {
    "left-out": lambda: [0.99**100, math.exp(-1.0)],
    "cap": capped,
    "renyi": divergences,
    "large-noise": large_noise,
}


@pytest.mark.parametrize("name", TESTS)
def test_a_number_without_a_query_is_the_printed_one(name: str) -> None:
    assert agree(TESTS[name](), CLAIMS.printed_of(name))


def test_the_rows_are_numbered_and_each_has_a_verdict_and_a_command() -> None:
    CLAIMS.check_rows(TESTS)


def test_every_query_has_its_row_in_the_table_and_prints_numbers() -> None:
    CLAIMS.check_queries(at_least=10)


@pytest.mark.soak
def test_the_queries_print_the_numbers_of_the_table(tmp_path: Path) -> None:
    CLAIMS.check_numbers(SWEEPS, tmp_path / "store")
