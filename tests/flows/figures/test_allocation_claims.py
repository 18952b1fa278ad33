"""The numbers in docs/reproduction-allocation.md against the output of its queries on a new store."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.figures import papers
from tests.flows.support.claims import Claims, agree

CLAIMS = Claims("reproduction-allocation.md")
SWEEPS = papers.SWEEPS["allocation"]
TESTS: dict[str, Callable[[], list[float]]] = {"left-out": lambda: [0.99**100, math.exp(-1.0)]}


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
