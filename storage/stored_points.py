"""The points of a part by their fields, for comparison with the points of a sweep."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privcore.problem import Problem
from storage.folder import Folder
from storage.identities import foreign_ids
from storage.parts import read_part

Column = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class StoredPoints:
    """The points of a part, one for each row; a point may have several rows.

    Attributes:
        part: Name of the part, relative to the data folder.
        fields: The values of each field of the problem.
        methods: Name, version, and options as JSON of each method.
        method: For each row, the place of its method in `methods`.
        statuses: The statuses that occur.
        status: For each row, the place of its status in `statuses`.
        finished_at: For each row, the end of its evaluation in microseconds since 1970.
    """

    part: str
    fields: Mapping[str, Column]
    methods: tuple[tuple[str, int, str], ...]
    method: NDArray[np.int64]
    statuses: tuple[str, ...]
    status: NDArray[np.int64]
    finished_at: NDArray[np.int64]


def read_points(place: Folder, path: Path, kind: type[Problem]) -> StoredPoints:
    """Return the points of a part.

    The ids of rows are functions of the columns that are read here. This is checked for one row of each
    method, and if it is false, for every row: a row with a foreign id is left out.

    Args:
        place: The store.
        path: The part.
        kind: Its problem.

    Raises:
        StoreError: The part cannot be read, or is damaged.
    """
    of_ids = ["point_id", "problem_id", "method", "method_version", "knobs"]
    columns = [*of_ids, "status", "finished_at", *kind.parameters]
    table = read_part(place, path, columns).unify_dictionaries().combine_chunks()
    methods, method = _methods(table)
    some = table.take(np.unique(method, return_index=True)[1]) if len(methods) > 1 else table.slice(0, 1)
    if any(foreign_ids(kind, some)):
        foreign = pa.array(sorted(set(foreign_ids(kind, table))), pa.string())
        import pyarrow.compute as pc  # slow to import, and rarely needed

        table = table.filter(pc.invert(pc.is_in(table["point_id"], foreign))).combine_chunks()
        methods, method = _methods(table)
    status, words = _codes(table["status"])
    return StoredPoints(
        part=str(path.relative_to(place.data)),
        fields={name: _values(table[name]) for name in kind.parameters},
        methods=methods,
        method=method,
        statuses=tuple(words),
        status=status,
        finished_at=table["finished_at"].cast(pa.int64()).to_numpy(),
    )


def _methods(table: pa.Table) -> tuple[tuple[tuple[str, int, str], ...], NDArray[np.int64]]:
    """Return the methods of the rows, and for each row the place of its method among them."""
    name, names = _codes(table["method"])
    options, texts = _codes(table["knobs"])
    versions, version = np.unique(table["method_version"].to_numpy(), return_inverse=True)
    if len(names) == len(texts) == len(versions) == 1:  # most parts
        return ((names[0], int(versions[0]), texts[0]),), np.zeros(len(table), np.int64)
    joint = (name * len(texts) + options) * len(versions) + version
    found, place = np.unique(joint, return_inverse=True)
    of_found = [divmod(each, len(versions)) for each in found.tolist()]
    methods = [
        (names[rest // len(texts)], int(versions[last]), texts[rest % len(texts)]) for rest, last in of_found
    ]
    return tuple(methods), place.astype(np.int64)


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return the codes of a column of words, and the words."""
    words = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return words.indices.to_numpy().astype(np.int64), words.dictionary.to_pylist()


def _values(column: pa.ChunkedArray) -> Column:
    """Return the values of a field: numbers, or texts as objects."""
    if not pa.types.is_string(column.type):
        return column.to_numpy()  # type: ignore[no-any-return]
    codes, words = _codes(column.dictionary_encode().unify_dictionaries())
    return np.array([*words, ""], object)[codes]
