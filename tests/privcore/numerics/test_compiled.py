"""Compiled functions: they call one another, and work if their machine code cannot be cached."""

import subprocess
import sys
from pathlib import Path

import pytest

from privcore.numerics.compiled import SHIPPED, _copy_shipped, announce, compiled


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


def test_the_machine_code_of_an_image_is_copied_once_to_the_folder_that_is_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped, folder = tmp_path / "shipped", tmp_path / "folder"
    (shipped / "module").mkdir(parents=True)
    (shipped / "module" / "function.nbi").write_text("compiled")
    monkeypatch.setenv(SHIPPED, str(shipped))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    _copy_shipped.__wrapped__()
    assert (folder / "module" / "function.nbi").read_text() == "compiled"
    (folder / "module" / "function.nbi").write_text("newer")
    _copy_shipped.__wrapped__()
    assert (folder / "module" / "function.nbi").read_text() == "newer"
    assert {path.name for path in tmp_path.iterdir()} == {"shipped", "folder"}, "nothing else is left"
