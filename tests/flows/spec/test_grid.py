"""Grids: counted exactly without being expanded, expanded without surprises."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.runs.plan import readable
from flows.spec.grid import Axis, count, expand
from flows.spec.sweep import Sweep, parse
from privcore import DomainError, params
from privcore.parameter import Integer, Real


def sweep(product: str, *, where: str = "", extra: str = "") -> Sweep:
    text = f"""
    name = "trial"
    [[grid]]
    problem = "unamplified-epsilon"
    methods = ["unamplified.exact"]
    product = {{{product}}}
    {extra}
    {f'where = "{where}"' if where else ""}
    """
    return parse(text.encode(), "trial.toml")


def values(axis: str, name: str = "sigma") -> list[Any]:
    """The values of one axis as a sweep file states it."""
    others = {"sigma": "1", "delta": "1e-5"} | {name: axis}
    product = ", ".join(f"{key} = {value}" for key, value in others.items())
    return list(sweep(product).grids[0].product[name])


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("1", [1.0]),
        ("[0.5, 2]", [0.5, 2.0]),
        ("{linear = [1, 2, 5]}", [1.0, 1.25, 1.5, 1.75, 2.0]),
        ("{geometric = [0.01, 100, 5]}", [0.01, 0.1, 1.0, 10.0, 100.0]),
        ("{range = [0.1, 0.5, 0.1]}", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("{range = [1, 2, 0.4]}", [1.0, 1.4, 1.8]),
        ("{range = [0.1, 1, 1e-1]}", [x / 10 for x in range(1, 11)]),
    ],
)
def test_an_axis_has_the_values_that_people_expect(axis: str, expected: list[float]) -> None:
    assert values(axis) == expected


def test_whole_numbers_are_generated_as_whole_numbers() -> None:
    assert values("{geometric = [100, 1e6, 5]}", "steps") == [100, 1000, 10**4, 10**5, 10**6]
    assert values("{geometric = [1, 1000, 5]}", "steps") == [1, 6, 32, 178, 1000]
    assert all(type(x) is int for x in values("{linear = [1, 10, 4]}", "steps"))


@given(
    first=st.floats(0.01, 10),
    factor=st.floats(1.001, 1e4),
    n=st.integers(2, 60),
    rule=st.sampled_from(["linear", "geometric"]),
)
def test_generated_values_are_as_many_as_counted_ordered_and_of_twelve_digits(
    first: float, factor: float, n: int, rule: str
) -> None:
    last = first * factor
    axis = sweep(f"sigma = {{{rule} = [{first!r}, {last!r}, {n}]}}, delta = 0.1").grids[0].product["sigma"]
    got = [float(x) for x in axis]
    assert len(got) == axis.size == n
    assert got == [float(f"{x:.12g}") for x in got]
    assert got == sorted(got)
    assert math.isclose(got[0], first, rel_tol=1e-11)
    assert math.isclose(got[-1], last, rel_tol=1e-11)


@pytest.mark.parametrize(
    ("product", "number"),
    [
        ("sigma = {linear = [1, 2, 1_000_000]}, delta = {linear = [0.1, 0.2, 1_000_000]}", 10**12),
        ("sigma = {range = [1, 2, 1e-300]}, delta = 1e-5", 10**300 + 1),
        ("sigma = {range = [0.001, 1e6, 5e-324]}, delta = {range = [1e-300, 0.5, 1e-307]}", None),
    ],
)
def test_a_monstrous_grid_is_counted_without_being_made(product: str, number: int | None) -> None:
    counted = count(sweep(product).grids)
    assert number is None or counted == number
    assert len(readable(counted)) < 30
    assert next(expand(sweep(product).grids)).problem.name == "unamplified-epsilon", "points come one by one"


def test_product_and_zip_combine_and_the_first_axis_is_slowest() -> None:
    asked = sweep("sigma = [1, 2], delta = 1e-5", extra="zip = {steps = [10, 20], participations = [1, 2]}")
    got = [tuple(p.problem.as_fields().values())[:4] for p in expand(asked.grids)]
    assert got == [(1.0, 1e-5, 10, 1), (1.0, 1e-5, 20, 2), (2.0, 1e-5, 10, 1), (2.0, 1e-5, 20, 2)]
    assert count(asked.grids) == 4


def test_where_excludes_points_before_they_could_contradict_themselves() -> None:
    product = "sigma = 1, delta = 1e-5, steps = [1, 5, 10], participations = [1, 10]"
    points = list(expand(sweep(product, where="participations <= steps").grids))
    assert [tuple(p.problem.as_fields().values())[2:4] for p in points] == [(1, 1), (5, 1), (10, 1), (10, 10)]


def test_a_contradictory_point_is_named_with_its_grid() -> None:
    asked = sweep("sigma = 1, delta = 1e-5, steps = [1, 5, 10], participations = [1, 10]")
    message = r"trial\.toml, line 4, grid 1: Expected participations <= steps, got participations=10, steps=1"
    with pytest.raises(DomainError, match=message):
        list(expand(asked.grids))


def test_a_where_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(
        DomainError, match="Expected a condition `where` that leaves points, got an empty grid"
    ):
        list(expand(sweep("sigma = 1, delta = 1e-5", where="sigma > 2").grids))


def test_a_point_of_several_grids_comes_once() -> None:
    text = """
    name = "twice"
    [[grid]]
    problem = "unamplified-epsilon"
    methods = ["unamplified.exact"]
    product = {sigma = [1, 2, 2.0], delta = 1e-5}
    [[grid]]
    problem = "unamplified-epsilon"
    methods = ["unamplified.exact"]
    product = {sigma = [2, 3], delta = 1e-5, participations = 1}
    """
    grids = parse(text.encode(), "twice.toml").grids
    assert [p.problem.as_fields()["sigma"] for p in expand(grids)] == [1.0, 2.0, 3.0]
    assert count(grids) == 5, "an upper bound, and cheap"


@pytest.mark.parametrize("parameter", [params.SIGMA, params.STEPS], ids=["real", "whole"])
def test_values_of_rules_are_exact_decimal_numbers_rounded_once(parameter: Real | Integer) -> None:
    rng = random.Random(parameter.name)
    for _ in range(100):
        first, step, count = rng.randint(1, 999), rng.randint(1, 99), rng.randint(3, 40)
        scale = 10 ** rng.randint(0, 3) if parameter is params.SIGMA else 1
        numbers = tuple(each / scale for each in (first, first + step * (count - 1), step))
        exact = [Fraction(first + step * i, scale) for i in range(count)]
        linear = Axis(parameter=parameter, rule="linear", numbers=(*numbers[:2], count))
        stepwise = Axis(parameter=parameter, rule="range", numbers=numbers)
        assert (
            list(linear) == list(stepwise) == [float(x) for x in exact] == [linear[i] for i in range(count)]
        )
