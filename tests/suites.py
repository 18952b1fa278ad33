"""Divides the tests into suites: `make test` is a sample, `make test-all` all but soak, `make soak` the rest.

`make test` draws one module of `SHARE`, since the import and the preparation of a module often take longer
than its tests. Of a drawn module, it runs `TESTS` of the tests without a mark of their own, or n if the
module is marked `sampled(n)`; of a parametrised test, `CASES` cases, or n if the test is marked
`sampled(n)`. The seed changes with the commit, so that all cases run in the course of some commits. Tests
that notice a seeded fault always run, others marked `thorough` only in `make test-all`. A file or a test that
is named on the command line runs completely.
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

SHARE = 6
"""Modules for each one in the sample."""

RESULTS = Path(__file__).parent / "mutations" / "results.json"
"""The tests that notice seeded faults, by suite."""

_whole, _seed = True, ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--suite` and `--seed`."""
    parser.addoption(
        "--suite",
        choices=["sample", "all"],
        help="sample (default if no path is named): the tests drawn by the commit; all: every test but soak",
    )
    parser.addoption("--seed", help="seed of the sample (default: the commit of the checkout)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decide for one suite, before the workers are started, which are given the same options."""
    if config.option.suite is None:
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        marked = config.option.markexpr not in {"", "not soak"}  # by another -m than that of addopts
        config.option.suite = "all" if named or marked else "sample"
    if config.option.seed is None:
        config.option.seed = commit()
    global _whole, _seed
    _whole, _seed = config.option.suite == "all", config.option.seed


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
    if _whole or collection_path.suffix != ".py":
        return None
    name = str(collection_path.relative_to(config.rootpath))
    return None if _is_drawn(name) or name in {each.partition("::")[0] for each in _witnesses()} else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not in the sample."""
    if _whole:
        return
    witnesses = _witnesses()
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
def _witnesses() -> set[str]:
    """Return the tests by which `make test` notices seeded faults."""
    found: dict[str, dict[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {of["test"] for of in found.values() if of.get("test")}


def _first(items: list[pytest.Item], number: int) -> list[pytest.Item]:
    """Return the items that the seed draws."""
    return sorted(items, key=lambda item: _draw(item.nodeid))[:number]


def _mark(item: pytest.Item) -> tuple[Any, Any]:
    """Return the closest mark `sampled` of a test with the function or module that has it."""
    return next(item.iter_markers_with_node("sampled"), (None, None))


def whole() -> bool:
    """Return whether all tests run, and not a sample of them."""
    return _whole


def some(cases: Sequence[Case], number: int, key: str = "") -> list[Case]:
    """Return the cases of a loop inside a test: as many as the sample has, in their order, or all of them.

    Args:
        cases: All cases.
        number: Cases in the sample.
        key: Makes the draw differ from that of other loops over as many cases.
    """
    drawn = sorted(range(len(cases)), key=lambda k: _draw(f"{key} {k}"))[:number]
    return list(cases) if _whole else [cases[k] for k in sorted(drawn)]


def commit() -> str:
    """Return the commit of the checkout, or "none" outside one."""
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "none"


def _draw(name: str) -> bytes:
    return blake2b(f"{_seed} {name}".encode(), digest_size=8).digest()
