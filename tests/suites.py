"""Divides the tests into suites: `make test` is a sample, `make test-all` all but soak, `make soak` the rest.

A change cannot wait for hours, so `make test-all` gives each test function `BUDGET` seconds: of a costly one
it runs as many cases as fit, drawn by the commit, and one of them in every third commit if even that does not
fit. `make soak` runs the others. `tests/costs.json` has the seconds of a case, which `python -m tests.costs`
writes from a report.

`make test` draws one module of `SHARE`, since the import and the preparation of a module often take longer
than its tests. Of a drawn module, it runs `TESTS` of the tests without a mark of their own, or n if the
module is marked `sampled(n)`; of a parametrised test, `CASES` cases, or n if the test is marked
`sampled(n)`. The seed changes with the commit, so that all cases run in the course of some commits. Tests
that notice a seeded fault always run, others marked `thorough` only in `make test-all`. A file or a test that
is named on the command line runs completely, with all cases.
"""

import gc
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")
CASES = 2
"""Cases of a parametrised test in the sample."""

TESTS = 3
"""Tests of a module in the sample."""

SHARE = 9
"""Modules for each one in the sample."""

BUDGET = 6.0
"""Seconds of a test function in `make test-all`, on two busy cores."""

SELDOM = 3
"""Mean number of commits from one case to the next, for a test function whose cases cost more."""

COSTS = Path(__file__).with_name("costs.json")
"""Mean seconds of a case of costly test functions."""

RESULTS = Path(__file__).parent / "mutations" / "results.json"
"""The tests that notice seeded faults, by suite."""

_suite, _seed = "cases", ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--suite` and `--seed`."""
    parser.addoption(
        "--suite",
        choices=["sample", "all", "cases"],
        help="sample (default if no path is named): the tests drawn by the commit; all: every test but soak; "
        "cases (default if one is named): and all cases of each",
    )
    parser.addoption("--seed", help="seed of the sample (default: the commit of the checkout)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decide for one suite, before the workers are started, which are given the same options."""
    if config.option.suite is None:
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        marked = config.option.markexpr not in {"", "not soak"}  # by another -m than that of addopts
        config.option.suite = "cases" if named else "all" if marked else "sample"
    if config.option.seed is None:
        config.option.seed = commit()
    global _suite, _seed
    _suite, _seed = config.option.suite, config.option.seed


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the seed of the sample, with which another run draws the same tests."""
    return f"a sample of the suite: --seed {_seed}" if config.option.suite == "sample" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Collect without garbage collections, and exempt the collected tests from all later ones.

    Ten thousand tests and all imported modules are not garbage, but every full collection visits them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Let the interpreter free modules at its end: DuckDB reports those of its objects that stay."""
    gc.unfreeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules that are neither drawn nor notice a seeded fault, before they are imported."""
    if whole() or collection_path.suffix != ".py":
        return None
    name = str(collection_path.relative_to(config.rootpath))
    return (
        None if _is_drawn(name) or name in {each.partition("::")[0] for each in _witnesses("test")} else True
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Give the mark `soak` to cases that are not drawn, and deselect tests that are not in the sample."""
    if config.option.suite != "cases":
        _leave_to_soak(items)
    yield
    if not whole():
        _take_sample(config, items)


def _leave_to_soak(items: list[pytest.Item]) -> None:
    """Mark the cases of costly test functions that `make test-all` does not run."""
    noticing = _witnesses("test") | _witnesses("test-all")
    costs: dict[str, float] = json.loads(COSTS.read_text(encoding="utf-8"))
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    for function, cases in functions.items():
        if function in costs:
            number = max(BUDGET / costs[function], 1.0 / SELDOM)
            number = int(number + int.from_bytes(_draw(function), "big") / 2**64)
            for item in set(cases) - set(_first(cases, number)):
                if item.nodeid not in noticing:
                    item.add_marker(pytest.mark.soak)


def _take_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not in the sample."""
    witnesses = _witnesses("test")
    drawn: set[pytest.Item] = set()
    cases: dict[tuple[str, str, int], list[pytest.Item]] = defaultdict(list)
    tests: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        name = item.nodeid.partition("@")[0]  # without the group, which pytest-xdist appends
        (module, _, test), (node, mark) = name.partition("[")[0].partition("::"), _mark(item)
        if name in witnesses:
            drawn.add(item)
        elif item.get_closest_marker("thorough"):
            continue
        elif isinstance(node, pytest.Module):
            tests[module, mark.args[0]].append(item)
        else:
            cases[module, test, mark.args[0] if mark else 0].append(item)
    for (module, _, number), group in cases.items():
        if number and _is_drawn(module):
            drawn.update(_first(group, number))
        elif _is_drawn(module):
            tests[module, TESTS] += _first(group, CASES)
    for (module, number), group in tests.items():
        if _is_drawn(module):
            drawn.update(_first(group, number))
    if left := [item for item in items if item not in drawn]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item in drawn]


def _is_drawn(module: str) -> bool:
    """Return whether the sample has tests of a module."""
    return int.from_bytes(_draw(module), "big") * SHARE < 2**64


@cache
def _witnesses(suite: str) -> set[str]:
    """Return the tests by which a suite notices seeded faults."""
    found: dict[str, dict[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {of[suite] for of in found.values() if of.get(suite)}


def _first(items: list[pytest.Item], number: int) -> list[pytest.Item]:
    """Return the items that the seed draws."""
    return sorted(items, key=lambda item: _draw(item.nodeid))[:number]


def _mark(item: pytest.Item) -> tuple[Any, Any]:
    """Return the closest mark `sampled` of a test with the function or module that has it."""
    return next(item.iter_markers_with_node("sampled"), (None, None))


def whole() -> bool:
    """Return whether all tests run, and not a sample of them."""
    return _suite != "sample"


def some(cases: Sequence[Case], number: int, key: str = "", most: int | None = None) -> list[Case]:
    """Return the cases of a loop inside a test, in their order: those that the suite has.

    Args:
        cases: All cases.
        number: Cases in the sample.
        key: Makes the draw differ from that of other loops over as many cases.
        most: Cases in `make test-all`, if not all of them.
    """
    drawn = sorted(range(len(cases)), key=lambda k: _draw(f"{key} {k}"))
    many = {"sample": number, "all": most}.get(_suite)
    return [cases[k] for k in sorted(drawn[:many])]


def commit() -> str:
    """Return the commit of the checkout, or "none" outside one."""
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "none"


def _draw(name: str) -> bytes:
    return blake2b(f"{_seed} {name}".encode(), digest_size=8).digest()
