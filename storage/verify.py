"""Verification: whether every file of a store is what its name and its manifest say."""

from pathlib import Path

import duckdb
import pyarrow as pa

from storage import layout
from storage.errors import StoreError
from storage.manifest import read_manifest
from storage.parts import ids_hash, read_part, survey


def verify(root: Path) -> list[str]:
    """Return what is wrong with a store, one sentence each that names the file; nothing if it is sound.

    Every byte is read: hashes, page checksums, schema, the points that a part's name promises, the parts
    that a manifest lists, and that two rows of one point have the same answer.

    Raises:
        StoreError: The folders themselves cannot be read.
    """
    found, foreign = survey(root)
    complaints = [f"{path} does not belong into a store; move it away." for path in foreign]
    answers = []
    for path in found:
        try:
            table = read_part(path)
        except StoreError as error:
            complaints.append(str(error))
            continue
        if ids_hash(table["point_id"].to_pylist()) != path.name[:32]:
            complaints.append(f"{path} does not hold the points that its name promises.")
        answers.append(table.select(["point_id", "status", "lower", "upper", "value"]))
    complaints += _complaints_of_manifests(root, {str(p.relative_to(root / layout.DATA)) for p in found})
    return complaints + _disagreements(answers)


def _complaints_of_manifests(root: Path, names: set[str]) -> list[str]:
    complaints = []
    for path in sorted((root / layout.SWEEPS).glob("[!.]*")):
        try:
            sweep = read_manifest(path)
        except StoreError as error:
            complaints.append(str(error))
            continue
        complaints += [
            f"{root / layout.DATA / name} of sweep {sweep.name} is missing: restore it or run it again."
            for name in sweep.parts
            if name not in names
        ]
    return complaints


def _disagreements(answers: list[pa.Table]) -> list[str]:
    """Return the points that were computed twice with different answers: a method broke its promise."""
    if not answers:
        return []
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.register("answers", pa.concat_tables(answers))
        ids = connection.execute(
            """
            select point_id from answers where status = 'ok' group by point_id
            having min(lower) < max(lower) or min(upper) < max(upper) or min(value) < max(value)
            order by point_id
            """
        ).fetchall()
    return [
        f"Point {point} was computed twice with different answers; see the column part in results."
        for (point,) in ids
    ]
