"""Build the page: static files, data of every problem, and the table to download, written as one folder."""

import gzip
import hashlib
import json
import tempfile
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path

from flows.page.bundle import bundled
from flows.page.data import catalogue
from flows.page.stored import browser_content, content, tables
from flows.printing import as_json
from flows.runs.signals import signals_interrupt
from privcore import DomainError
from storage import Store, StoreError
from storage.errors import reason
from storage.export import columns_as_parquet
from storage.place.located import outside_stores
from storage.table.lookup_table import lookup_table, to_parquet
from storage.table.shipped import shipped_version

CATALOGUE = "catalogue.json"
PARQUET = "table.parquet"
BUNDLES = {"start.js": "page.js", "engine/engine.js": "engine/worker.js"}
"""Scripts that a first answer needs, each joined from the modules of one."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A page that was written.

    Attributes:
        out: Its folder.
        version: Version of the lookup table.
        rows: Rows of the table.
        problems: Rows of each problem.
        bytes: Size of the folder.
        conflicts: Number of problems about which the store contradicts itself.
    """

    out: Path
    version: str
    rows: int
    problems: dict[str, int]
    bytes: int
    conflicts: int


def build(store: Store, out: Path, *, live: bool = False) -> Built:
    """Write the page into a folder, which is replaced whole; the same store gives the same bytes.

    Args:
        store: The store of the answers.
        out: The folder; it may be missing, empty, or hold an older page.
        live: Whether `privsweep serve` will serve the page and compute answers that are not stored.

    Raises:
        DomainError: The folder holds something else, or is part of a store.
        StoreError: The store cannot be read, or has no answer; or a write failed, and an older page is kept.
    """
    _refuse(out)
    with store.unchanged():
        found = tables(store)
        table = lookup_table(store)
        conflicts = store.sql("select count(*) as n from best where lower > upper")["n"].to_pylist()[0]
    files, addresses = {PARQUET: to_parquet(table)}, {}
    for each in found:
        path = f"data/{each.kind.name}"
        columns = content(each)
        files[f"{path}.parquet"] = columns_as_parquet(columns)
        browsed = as_json(browser_content(each, columns)).encode()
        files[f"{path}.json.gz"] = data = gzip.compress(browsed, 6, mtime=0)
        addresses[each.kind.name] = f"{path}.json.gz?v={_hash(data)}"
    static = _static(resources.files("flows.page") / "static")
    files |= static | {bundle: bundled(first, static) for bundle, first in BUNDLES.items()}
    known = catalogue(found, addresses, table.version, version("privsweep"))
    known |= {"shipped": table.version == shipped_version(), "live": "api/ask" if live else None}
    known |= {"files": sorted([*files, CATALOGUE])}
    files[CATALOGUE] = as_json(known, indent=1).encode()
    _write(out, files)
    return Built(
        out=out,
        version=table.version,
        rows=sum(each.rows for each in found),
        problems={each.kind.name: each.rows for each in found},
        bytes=sum(map(len, files.values())),
        conflicts=conflicts,
    )


def _static(folder: Traversable, below: str = "") -> dict[str, bytes]:
    """Return the files of a folder and of its subfolders, by their relative names."""
    files: dict[str, bytes] = {}
    for entry in folder.iterdir():
        name = below + entry.name
        files |= _static(entry, f"{name}/") if entry.is_dir() else {name: entry.read_bytes()}
    return files


def _hash(data: bytes) -> str:
    """Return a hash for an address, so that a browser does not use an older copy of the data."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _refuse(out: Path) -> None:
    """Raise `DomainError` if a page would replace something else, or the path is an address."""
    target = outside_stores(out, "folder")
    if target.exists() and not target.is_dir():
        raise DomainError(f"Expected a folder, got the file {out}.")
    others = _others(target)
    if others:
        raise DomainError(
            f"Expected an empty folder or an older page, got {out}, which holds something else: {others[0]}."
        )


def _others(folder: Path) -> list[str]:
    """Return the files in a folder that are not listed in the catalogue of a page."""
    try:
        listed = set(json.loads((folder / CATALOGUE).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        listed = set()
    held = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({path.relative_to(folder).as_posix() for path in held} - listed)


def _write(out: Path, files: dict[str, bytes]) -> None:
    """Write the files to a scratch folder and move it into place; then remove the older page."""
    try:
        with signals_interrupt():
            _replace(out.resolve(), files)
    except OSError as error:
        raise StoreError(f"Cannot write {out}: {reason(error)}.") from error


def _replace(target: Path, files: dict[str, bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".page-", suffix=".tmp", dir=target.parent) as scratch:
        new = Path(scratch) / "new"
        for name, data in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        old = Path(scratch) / "old"
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:  # Ctrl-C too: the older page would be removed with the scratch folder
            if old.exists() and not target.exists():
                old.rename(target)
            raise
