"""Points by number: the order of the grid, and the way back from fields to numbers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.spec.box import Box
from flows.spec.grid import Grid
from flows.spec.sweep import parse
from privcore import DomainError, Problem


def grid_of(text: str) -> Grid:
    (grid,) = parse(f'name = "trial"\n[[grid]]\n{text}'.encode(), "trial.toml").grids
    return grid


def problems(box: Box) -> list[Problem]:
    """The problems that are not excluded, in the order of their numbers."""
    numbers = np.arange(box.size)
    excluded = box.excluded(numbers)
    return [box.problem(int(number)) for number in (numbers if excluded is None else numbers[~excluded])]


GRIDS = {
    "a product": """
        problem = "unamplified-epsilon"
        methods = ["unamplified.exact"]
        product = {sigma = {geometric = [0.5, 8, 5]}, delta = [1e-5, 1e-7], steps = {range = [1, 7, 3]}}
    """,
    "a product with a zip": """
        problem = "poisson-epsilon"
        methods = ["poisson.certified"]
        product = {sigma = {linear = [1, 2, 3]}, delta = 1e-7}
        zip = {steps = [10, 100, 10], sampling_probability = [0.1, 0.01, 0.1]}
    """,
    "values that occur twice": """
        problem = "unamplified-epsilon"
        methods = ["unamplified.exact"]
        product = {steps = {geometric = [1, 3, 9]}, sigma = [1, 1.0, 2], delta = 1e-5}
    """,
    "a condition": """
        problem = "allocation-epsilon"
        methods = ["allocation.certified"]
        product = {sigma = [0.5, 1, 2], steps = [1, 10, 100], participations = [1, 3, 5], delta = 1e-7}
        where = "participations <= steps and (sigma >= 1 or steps > 1)"
    """,
    "words": """
        problem = "allocation-delta"
        methods = ["allocation.certified"]
        product = {adjacency = ["remove", "add"], sigma = [1, 2], epsilon = [0.5, 1], steps = 10}
        where = "adjacency == 'add' or sigma > 1"
    """,
    "examples and batch sizes": """
        problem = "poisson-epsilon"
        methods = ["poisson.certified"]
        product = {batch_size = [128, 256], sigma = [0.8, 1.1], examples = [60000, 30000], delta = 1e-5}
        where = "batch_size < 200 or examples > 40000"
    """,
    "a condition on all fields": """
        problem = "unamplified-epsilon"
        methods = ["unamplified.exact"]
        product = {sigma = [1, 2], delta = [1e-5, 1e-6], steps = [1, 2], epochs = [1, 2]}
        where = "sigma * steps * epochs < 8 and (delta < 1e-5 or adjacency == 'add-remove')"
    """,
}


@pytest.mark.parametrize("name", GRIDS)
def test_numbers_give_the_problems_of_the_grid_in_its_order_each_once(name: str) -> None:
    grid = grid_of(GRIDS[name])
    assert problems(Box(grid)) == list(dict.fromkeys(grid.problems()))


@pytest.mark.parametrize("name", GRIDS)
def test_fields_give_back_the_numbers(name: str) -> None:
    box = Box(grid_of(GRIDS[name]))
    numbers = np.arange(box.size)[::-1]
    assert box.numbers(box.columns(numbers)).tolist() == numbers.tolist()


def test_a_problem_outside_of_the_grid_has_no_number() -> None:
    box = Box(grid_of(GRIDS["a product with a zip"]))
    columns = box.columns(np.arange(1))
    assert box.numbers(columns).tolist() == [0]
    for name, other in (("sigma", 1.25), ("epochs", 2), ("adjacency", "add"), ("steps", 100)):
        values = np.array([other], columns[name].dtype)
        assert box.numbers({**columns, name: values}).tolist() == [-1], name


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 10))
def test_a_number_has_the_rows_of_the_dimensions_as_its_digits(sizes: list[int], seed: int) -> None:
    names = ["sigma", "steps", "epochs"][: len(sizes)]
    axes = ", ".join(f"{n} = {list(range(1, 1 + size))}" for n, size in zip(names, sizes, strict=True))
    rest = "" if "sigma" in names else ", sigma = 1"
    text = 'problem = "unamplified-epsilon"\nmethods = ["unamplified.exact"]\n'
    box = Box(grid_of(text + f"product = {{{axes}{rest}, delta = 1e-5}}"))
    number = seed % box.size
    digits = [int(box.rows(k, np.array([number]))[0]) for k in range(len(box.dimensions))]
    assert sum(d * f for d, f in zip(digits, box.factors, strict=True)) == number
    assert all(a % b == 0 for a, b in pairwise(box.factors))


def test_a_contradiction_is_found_in_the_fields_that_contradict() -> None:
    text = """
        problem = "allocation-epsilon"
        methods = ["allocation.certified"]
        product = {sigma = {linear = [1, 2, 100000]}, steps = [20, 5], participations = 10, delta = 1e-5}
    """
    with pytest.raises(DomainError, match="Expected participations <= steps"):
        Box(grid_of(text))
    left = Box(grid_of(text + 'where = "participations <= steps"'))
    excluded = left.excluded(np.arange(left.size))
    assert excluded is not None
    assert np.count_nonzero(~excluded) == 100_000


def test_boxes_without_a_common_value_of_a_field_do_not_meet() -> None:
    text = 'problem = "unamplified-epsilon"\nmethods = ["unamplified.exact"]\n'
    one, other, third = (
        Box(grid_of(text + f"product = {{sigma = {sigma}, delta = 1e-5}}"))
        for sigma in ("[1, 2]", "[3]", "[2]")
    )
    assert (one.meets(other), one.meets(third)) == (False, True)
