"""The store: Parquet parts on disk, DuckDB views over them, lookups and SQL."""

from privcore.errors import LimitError
from storage.catalog import Store, open_store
from storage.errors import QueryError, StoreError
from storage.lookup import Found
from storage.manifest import Manifest, manifests, write_manifest
from storage.parts import parts, publish
from storage.schema import SCHEMA_VERSION, Provenance, Row, provenance, schema_for, to_table

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
    "parts",
    "provenance",
    "publish",
    "schema_for",
    "to_table",
    "write_manifest",
]
