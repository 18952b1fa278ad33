"""Croissant description of a lookup table: JSON-LD by which catalogues and loaders of data sets read it."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from privcore import PROBLEMS
from storage.place.disk import write_atomically
from storage.schema import origin_text, schema_for
from storage.table.lookup_table import LookupTable

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
LICENCE = "https://spdx.org/licenses/Apache-2.0.html"
TABLE = "table"
"""Identifier of the file in the description."""

ANSWERS = "answers"
"""Identifier of the rows in the description."""

_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
"""The context of Croissant 1.0, which every description repeats, without `_TERMS`."""

_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet"),
    *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
    *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
    "transform",
)
"""Terms of Croissant, whose prefix is `cr:`."""

_TYPES = (
    (pa.types.is_floating, "sc:Float"),
    (pa.types.is_integer, "sc:Integer"),
    (pa.types.is_boolean, "sc:Boolean"),
    (pa.types.is_timestamp, "sc:DateTime"),
    (pa.types.is_string, "sc:Text"),
)


def write_description(table: LookupTable, path: Path) -> Path:
    """Write the description of a published lookup table next to its file, atomically.

    Args:
        table: The table.
        path: Its Parquet file, `<name>.parquet`.

    Returns:
        Path of the description, `<name>.croissant.json`.

    Raises:
        StoreError: The disk refused.
    """
    content = description(table, path.name, path.read_bytes())
    text = json.dumps(content, indent=1, ensure_ascii=False)
    write_atomically(described := path.with_suffix(".croissant.json"), f"{text}\n".encode())
    return described


def _imports(table: LookupTable) -> str:
    """Return the sentence about answers that the author of a table had not computed, or ""."""
    return origin_text(table.sources, f" {sum(table.sources.values())} of the answers were ", ".")


def description(table: LookupTable, name: str, content: bytes) -> dict[str, Any]:
    """Return the description of a lookup table.

    Args:
        table: The table.
        name: Name of its Parquet file, in the folder of the description.
        content: Bytes of the file.

    Returns:
        JSON-LD that conforms to Croissant 1.0.
    """
    day, _, digest = table.version.partition("-")
    year, month, date = map(int, day.split("."))
    problems = sorted(pc.unique(table.rows["problem"]).to_pylist())
    schemas = {kind.name: schema_for(kind) for kind in PROBLEMS}
    return {
        "@context": {**_CONTEXT, **{name: f"cr:{name}" for name in _TERMS}},
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": f"privsweep-lookup-{table.version}",
        "description": (
            f"Bounds of differential privacy: {len(table.rows)} answers to questions about "
            f"{', '.join(problems)}. Each row has a question, a lower and an upper bound, both rounded "
            "outwards, the confidence at which they hold (1 if they are proved), and the method, code and "
            f"machine that computed them. A field that a question lacks is null.{_imports(table)}"
        ),
        "license": LICENCE,
        "creator": {"@type": "sc:Organization", "name": "The privsweep authors"},
        "citeAs": f"The privsweep authors. Lookup table of privsweep, version {table.version}.",
        "version": f"{year}.{month}.{date}+{digest}",
        "datePublished": day.replace(".", "-"),
        "isLiveDataset": False,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": TABLE,
                "name": name,
                "description": "All answers, as one Parquet file.",
                "contentUrl": name,
                "contentSize": f"{len(content)} B",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": ANSWERS,
                "name": ANSWERS,
                "description": "One record for each answer.",
                "key": {"@id": f"{ANSWERS}/point_id"},
                "field": [_field(column, schemas, problems) for column in table.rows.schema],
            }
        ],
    }


def _field(column: pa.Field, schemas: Mapping[str, pa.Schema], problems: Collection[str]) -> dict[str, Any]:
    """Return the description of a column, from the schemas of those problems of the table that have it."""
    declared = {
        name: schema.field(column.name) for name, schema in schemas.items() if column.name in schema.names
    }
    declared = {name: field for name, field in declared.items() if name in problems} or declared
    unit = ", ".join(sorted({_metadata(field, b"unit") for field in declared.values()} - {"", "1"}))
    meaning = _meaning(declared)
    return {
        "@type": "cr:Field",
        "@id": f"{ANSWERS}/{column.name}",
        "name": column.name,
        "description": f"{meaning} (in {unit})" if unit else meaning,
        **({"unitText": unit} if unit else {}),
        "dataType": next(word for is_type, word in _TYPES if is_type(_plain(column.type))),
        "source": {"fileObject": {"@id": TABLE}, "extract": {"column": column.name}},
    }


def _meaning(declared: Mapping[str, pa.Field]) -> str:
    """Return the meaning of a column; if it differs between problems, with their names."""
    problems = defaultdict(list)
    for name, field in declared.items():
        problems[_metadata(field, b"meaning")].append(name)
    if len(problems) == 1:
        return next(iter(problems))
    return " ".join(f"In {', '.join(names)}: {meaning}." for meaning, names in problems.items())


def _metadata(field: pa.Field, key: bytes) -> str:
    """Return an entry of the metadata of a column, or nothing."""
    metadata: dict[bytes, bytes] = field.metadata or {}
    return metadata.get(key, b"").decode()


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
