"""Functions that numba compiles, or loads from its cache on disk, when they are first called.

A lookup does not call them, and the import of numba takes as long as a lookup may take in all.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

SHIPPED = "PRIVSWEEP_COMPILED"
"""Environment variable with the folder of machine code in the container image: `tasks.precompile`."""

_DEFAULTS = {"cache": True, "no_cfunc_wrapper": True}
"""Options of all functions; wrappers for C, which nothing here calls, take a fourth of the compilation."""


def compiled(**options: Any) -> Callable[[Callable[P, R]], "Compiled[P, R]"]:
    """Return a decorator that compiles a function on its first call.

    The machine code is cached next to the source file if that folder is writable, otherwise in the user's
    cache folder if that is writable.

    Args:
        options: Options of `numba.njit`, such as `error_model`.

    Example:
        >>> @compiled(cache=False)
        ... def twice(x: float) -> float:
        ...     return 2.0 * x
        >>> twice(1.5)
        3.0
    """
    return lambda function: Compiled(function, _DEFAULTS | options)


class Compiled(Generic[P, R]):
    """Function that is compiled when Python or other compiled code first calls it.

    Attributes:
        py_func: The Python function before compilation.
    """

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        self.__doc__, self.__name__, self.__module__ = (
            function.__doc__,
            function.__name__,
            function.__module__,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the value of the compiled function."""
        result: R = self._dispatcher(*args, **kwargs)
        return result

    def __reduce__(self) -> str:
        """Pickle by name, like a plain function."""
        return self.__name__

    @cached_property
    def _dispatcher(self) -> Any:
        import numba

        if _announced:
            _watch_compilations()
        _copy_shipped()
        try:
            return numba.njit(**self._options)(self.py_func)
        except RuntimeError:  # no folder for the machine code is writable
            return numba.njit(**self._options | {"cache": False})(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """Type under which numba resolves calls of this function from other compiled functions."""
        return self._dispatcher._numba_type_


@cache
def _copy_shipped() -> None:
    """Copy the machine code of the container image to NUMBA_CACHE_DIR, if that folder does not exist.

    Numba uses no folder that it cannot write to, and containers cannot write to their image.
    """
    shipped, folder = (os.environ.get(name, "") for name in (SHIPPED, "NUMBA_CACHE_DIR"))
    if not (shipped and folder and Path(shipped).is_dir()) or Path(folder).exists():
        return
    with suppress(OSError):  # another process was faster, or the parent folder is not writable
        staged = Path(tempfile.mkdtemp(dir=Path(folder).parent))
        try:
            shutil.copytree(shipped, staged / "copy")
            (staged / "copy").rename(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


_announced: list[Callable[[], None]] = []


def announce(say: Callable[[], None]) -> None:
    """Call a function once, before the first compilation in this process; cached code is not compiled.

    Args:
        say: The function; it may print a sentence.
    """
    _announced.append(say)


@cache
def _watch_compilations() -> None:
    """Let numba report compilations to the functions of `announce`."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _event: Any) -> None:
            while _announced:
                _announced.pop()()

        def on_end(self, _event: Any) -> None:
            """Ignore the end."""

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


def load() -> None:
    """Import the libraries that the first call of a function needs, before points are timed and limited."""
    for name in ("numba", "scipy.special"):
        import_module(name)
