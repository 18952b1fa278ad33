"""Functions that numba compiles, or finds in its cache on disk, when they are first called.

A lookup calls none of them, and importing numba takes as long as a whole lookup may.
"""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled(**options: Any) -> Callable[[Callable[P, R]], "Compiled[P, R]"]:
    """Return a decorator that makes a function compiled code.

    The machine code is kept beside the source, else in the user's folder for caches, where one of them can be
    written.

    Args:
        options: Those of `numba.njit`, such as `error_model`.

    Example:
        >>> @compiled(cache=False)
        ... def twice(x: float) -> float:
        ...     return 2.0 * x
        >>> twice(1.5)
        3.0
    """
    return lambda function: Compiled(function, {"cache": True} | options)


class Compiled(Generic[P, R]):
    """A function that is compiled when it is first called, by whomever: Python or other compiled code.

    Attributes:
        py_func: The function as it was written.
    """

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        self.__doc__, self.__name__, self.__module__ = (
            function.__doc__,
            function.__name__,
            function.__module__,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function does."""
        result: R = self._dispatcher(*args, **kwargs)
        return result

    def __reduce__(self) -> str:
        """Pickle as functions are: by name."""
        return self.__name__

    @cached_property
    def _dispatcher(self) -> Any:
        import numba

        try:
            return numba.njit(**self._options)(self.py_func)
        except RuntimeError:  # no folder for the machine code can be written
            return numba.njit(**self._options | {"cache": False})(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of the names that it meets in the code of another function."""
        return self._dispatcher._numba_type_


def load() -> None:
    """Import now what the first call of a function would import: where points are measured and limited."""
    for name in ("numba", "scipy.special"):
        import_module(name)
