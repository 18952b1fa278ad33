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
    from privcore.accountant import from_opacus
    from privsweep.answers import (
        ask,
        compare,
        epsilon,
        lookup,
        methods,
        noise,
        plan,
        problems,
        profile,
        solve,
        steps,
    )
    from privsweep.enclosure import Comparison, Enclosure, Enclosures, Report
    from privsweep.evidence import audit, labels, membership
    from privsweep.sweeps import accountant, run
    from privsweep.table import Table, sql
    from privsweep.training import Run
    from storage import Store, open_store

    __version__: str

__all__ = [
    "Comparison",
    "DomainError",
    "Enclosure",
    "Enclosures",
    "Point",
    "PrivsweepError",
    "Report",
    "Run",
    "Store",
    "Table",
    "accountant",
    "ask",
    "audit",
    "compare",
    "epsilon",
    "evaluate",
    "find",
    "find_problem",
    "from_opacus",
    "labels",
    "lookup",
    "membership",
    "methods",
    "methods_for",
    "noise",
    "open_store",
    "plan",
    "problems",
    "profile",
    "run",
    "solve",
    "sql",
    "steps",
]

_MODULES = {
    "privcore": (
        "DomainError",
        "Point",
        "PrivsweepError",
        "evaluate",
        "find",
        "find_problem",
        "methods_for",
    ),
    "privcore.accountant": ("from_opacus",),
    "privsweep.answers": (
        "ask",
        "compare",
        "epsilon",
        "lookup",
        "methods",
        "noise",
        "plan",
        "problems",
        "profile",
        "solve",
        "steps",
    ),
    "privsweep.evidence": ("audit", "labels", "membership"),
    "privsweep.enclosure": (
        "Comparison",
        "Enclosure",
        "Enclosures",
        "Report",
    ),
    "privsweep.sweeps": (
        "accountant",
        "run",
    ),
    "privsweep.table": (
        "Table",
        "sql",
    ),
    "privsweep.training": ("Run",),
    "storage": (
        "Store",
        "open_store",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name of `__all__` on its first use, since DuckDB and numpy take half a second to import."""
    if name == "__version__":
        from importlib.metadata import version

        return version("privsweep")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__version__"])
