"""privsweep from Python: proved bounds of differential privacy, and a store of them.

Example:
    >>> import privsweep as ps
    >>> answer = ps.epsilon(sigma=1.0, steps=1000, delta=1e-6, sampling="none")
    >>> answer.lower <= answer.upper
    True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privsweep import siblings

siblings.find()

if TYPE_CHECKING:
    from privcore import DomainError, Point, PrivsweepError, evaluate, find, find_problem, methods_for
    from privsweep.answers import ask, compare, epsilon, noise
    from privsweep.enclosure import Comparison, Enclosure
    from privsweep.sweeps import accountant, run
    from privsweep.table import Table, sql
    from storage import Store, open_store

__all__ = [
    "Comparison",
    "DomainError",
    "Enclosure",
    "Point",
    "PrivsweepError",
    "Store",
    "Table",
    "accountant",
    "ask",
    "compare",
    "epsilon",
    "evaluate",
    "find",
    "find_problem",
    "methods_for",
    "noise",
    "open_store",
    "run",
    "sql",
]

_MODULES = {
    "privcore": ("DomainError", "Point", "PrivsweepError", "evaluate", "find", "find_problem", "methods_for"),
    "privsweep.answers": ("ask", "compare", "epsilon", "noise"),
    "privsweep.enclosure": ("Comparison", "Enclosure"),
    "privsweep.sweeps": ("accountant", "run"),
    "privsweep.table": ("Table", "sql"),
    "storage": ("Store", "open_store"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name of `__all__` on its first use, since DuckDB and numpy take half a second to import."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
