"""Compiled functions: they call one another, and work if their machine code cannot be cached."""

import subprocess
import sys

import pytest

from privcore.numerics.compiled import announce, compiled


@compiled(cache=False)
def _square(x: float) -> float:
    """Return the square."""
    return x * x


@compiled(cache=False)
def _fourth(x: float) -> float:
    return _square(_square(x))


def test_a_compiled_function_is_called_from_compiled_code() -> None:
    assert _fourth(2.0) == 16.0 == _fourth.py_func(2.0)
    assert _square.__doc__ == "Return the square."


def test_where_no_folder_can_be_written_a_function_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])  # no folder is writable

    @compiled()
    def third(x: float) -> float:
        return x / 3.0

    assert third(6.0) == 2.0


def test_importing_the_numerics_imports_neither_numba_nor_scipy() -> None:
    script = "import sys, privcore; print({'numba', 'llvmlite', 'scipy.special'} & sys.modules.keys())"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "set()\n"


def test_the_first_compilation_is_announced_once() -> None:
    said: list[str] = []

    @compiled(cache=False)
    def twice(x: float) -> float:
        return 2.0 * x

    announce(lambda: said.append("compiling"))
    assert (twice(1.5), twice(2.5), twice(3)) == (3.0, 5.0, 6.0)
    assert said == ["compiling"]
