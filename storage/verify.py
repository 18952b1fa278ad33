"""Verification: whether every file of a store is what its name and its manifest say."""

from pathlib import Path

import duckdb
import pyarrow as pa

from storage import layout
from storage.errors import StoreError
from storage.manifest import Manifest, missing, read_manifest
from storage.parts import ids_hash, read_part, survey


def verify(root: Path) -> list[str]:
    """Return what is wrong with a store, one sentence each that names the file; nothing if it is sound.

    Every byte is read: hashes, page checksums, schema, the points that a part's name promises, the parts
    that a manifest lists, and that two rows of one point have the same answer.

    Raises:
        StoreError: The folders themselves cannot be read.
    """
    sweeps, complaints = _manifests(root)  # before the parts: a sweep that ends meanwhile lists later ones
    found, foreign = survey(root)
    complaints += [f"{path} does not belong into a store; move it away." for path in foreign]
    answers = []
    for path in found:
        try:
            table = read_part(path)
        except StoreError as error:
            complaints.append(str(error))
            continue
        if ids_hash(table["point_id"].to_pylist()) != path.name[:32]:
            complaints.append(f"{path} does not hold the points that its name promises.")
        table = table.select(["point_id", "status", "lower", "upper", "value"])
        answers.append(table.append_column("part", pa.repeat(str(path), len(table)).dictionary_encode()))
    names = {str(path.relative_to(root / layout.DATA)) for path in found}
    complaints += [
        missing(root, sweep, name) for sweep in sweeps for name in sweep.parts if name not in names
    ]
    return complaints + _disagreements(answers)


def _manifests(root: Path) -> tuple[list[Manifest], list[str]]:
    """Return the manifests that can be read, and what is wrong with the others."""
    sweeps, complaints = [], []
    for path in layout.entries(root / layout.SWEEPS):
        try:
            sweeps.append(read_manifest(path))
        except StoreError as error:
            complaints.append(str(error))
    return sweeps, complaints


def _disagreements(answers: list[pa.Table]) -> list[str]:
    """Return the points that have two different answers, although a method promises the same bits."""
    if not answers:
        return []
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.register("answers", pa.concat_tables(answers))
        found = connection.execute(
            """
            select point_id, min(part), max(part) from answers where status = 'ok' group by point_id
            having min(lower) < max(lower) or min(upper) < max(upper) or min(value) < max(value)
            order by point_id
            """
        ).fetchall()
    return [f"Point {point} has different answers in {one} and {other}." for point, one, other in found]
