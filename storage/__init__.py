"""The store: Parquet parts on disk, DuckDB views over them, lookups and SQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privcore.errors import LimitError
    from storage.catalog import Store, open_store
    from storage.errors import QueryError, StoreError
    from storage.manifest import Manifest, manifests, write_manifest
    from storage.parts import publish
    from storage.schema import SCHEMA_VERSION, Provenance, Row, provenance, schema_for, to_table
    from storage.sql.lookup import Found

__all__ = [
    "SCHEMA_VERSION",
    "Found",
    "LimitError",
    "Manifest",
    "Provenance",
    "QueryError",
    "Row",
    "Store",
    "StoreError",
    "manifests",
    "open_store",
    "provenance",
    "publish",
    "schema_for",
    "to_table",
    "write_manifest",
]

_MODULES = {
    "privcore.errors": ("LimitError",),
    "storage.catalog": ("Store", "open_store"),
    "storage.errors": ("QueryError", "StoreError"),
    "storage.sql.lookup": ("Found",),
    "storage.manifest": ("Manifest", "manifests", "write_manifest"),
    "storage.parts": ("publish",),
    "storage.schema": ("SCHEMA_VERSION", "Provenance", "Row", "provenance", "schema_for", "to_table"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name of `__all__` on its first use: the processes of a sweep need no DuckDB."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
