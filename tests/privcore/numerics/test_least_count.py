"""The search for the least number is right at the ends, and keeps undecided numbers open."""

import math

import pytest

from privcore.numerics.least_count import least_count


@pytest.mark.parametrize(("target", "least"), [(2.0, 1), (1.0, 1), (0.99, 2), (0.1, 10), (0.0101, 100)])
def test_the_least_number_is_found(target: float, least: int) -> None:
    assert least_count(lambda n: (1.0 / n, 1.0 / n), target, 100) == (least, least)


def test_numbers_that_are_not_enough_give_no_upper_end() -> None:
    assert least_count(lambda n: (1.0 / n, 1.0 / n), 0.001, 100) == (101.0, math.inf)


def test_the_ends_differ_by_the_numbers_that_are_undecided() -> None:
    assert least_count(lambda n: (0.9 / n, 1.1 / n), 0.01, 1000) == (90.0, 110.0)
