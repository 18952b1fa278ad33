"""The manifest of a sweep: its points, their outcome, and the parts that hold them; written last."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from storage import layout
from storage.errors import DamagedError, StoreError, reason
from storage.folder import Folder
from storage.parts import is_name
from storage.replacements import newest, replacements
from storage.schema import SCHEMA_VERSION

COMPLETE = "complete"
INCOMPLETE = "incomplete"
HASH = "sha256"
"""Key of the hash of a manifest's content; manifests of earlier releases lack it."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The record of one sweep.

    Attributes:
        digest: Hash of the sweep's content, hexadecimal; a new run of the sweep replaces its manifest.
        name: Name of the sweep.
        spec: The sweep as it was read, in JSON types.
        counts: Number of points by outcome, for example `{"ok": 90, "failed": 2}`.
        parts: Names of the parts that hold its points, relative to the store's data folder; every name ends
            with the SHA-256 of the part.
        git_commit: Commit of the code that ran it.
        started_at: Start of the run, in UTC.
        finished_at: End of the run, in UTC.
        status: `complete` or `incomplete`.
        schema_version: Version of the store's schema.
    """

    digest: str
    name: str
    spec: Mapping[str, Any]
    counts: Mapping[str, int]
    parts: tuple[str, ...]
    git_commit: str
    started_at: datetime
    finished_at: datetime
    status: str
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Raise `ValueError` for a digest that could name another file, and for an unknown status."""
        if not re.fullmatch(r"[0-9a-f]{8,128}", self.digest):
            raise ValueError(f"Expected a digest of 8 to 128 hexadecimal digits, got {self.digest[:130]!r}.")
        if self.status not in (COMPLETE, INCOMPLETE):
            raise ValueError(f"Expected status complete or incomplete, got {self.status!r}.")

    def with_parts(self, parts: tuple[str, ...]) -> Self:
        """Return the manifest with other parts."""
        return replace(self, parts=parts)


def write_manifest(place: Folder, manifest: Manifest) -> Path:
    """Write a manifest to `sweeps/<digest>.json`; an earlier manifest of the same sweep is replaced.

    Raises:
        StoreError: The disk refused; an earlier manifest stays as it was.
    """
    path = manifest_of(place, manifest.digest)
    content = _content(manifest)
    place.write(path, _canonical({**content, HASH: _hash(content)}).encode() + b"\n")
    return path


def manifest_of(place: Folder, digest: str) -> Path:
    """Return the path of a sweep's manifest, which need not exist."""
    return place.root / layout.SWEEPS / f"{digest}.json"


def to_json(manifest: Manifest) -> str:
    """Return a manifest as canonical JSON, without its hash."""
    return _canonical(_content(manifest))


def _content(manifest: Manifest) -> dict[str, Any]:
    return {
        **manifest.__dict__,
        "started_at": manifest.started_at.isoformat(),
        "finished_at": manifest.finished_at.isoformat(),
    }


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, indent=1, allow_nan=False)


def _hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest's content; order and spaces in the file do not matter."""
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def manifests(place: Folder) -> list[Manifest]:
    """Return the manifests of a store, the latest last, with replaced parts under their current names.

    Raises:
        StoreError: A manifest cannot be read, or is of a newer version; the sentence names the file.
    """
    files = [path for path in place.entries(layout.SWEEPS) if path.suffix == ".json"]
    found = sorted((read_manifest(place, file) for file in files), key=lambda m: (m.finished_at, m.digest))
    made = replacements(place)  # after the manifests: a part is replaced before it is deleted
    return [sweep.with_parts(newest(sweep.parts, made)) for sweep in found]


def read_manifest(place: Folder, path: Path) -> Manifest:
    """Return one manifest.

    Raises:
        DamagedError: The file is not as it was written.
        StoreError: The file cannot be read, or is of a newer version.
    """
    shown = place.shown(path)
    layout.refuse_no_file(path, shown)
    try:
        content = json.loads(layout.content_of(path))
        version = content["schema_version"]
        expected = content.pop(HASH, None)
    except OSError as error:
        raise StoreError(f"Cannot read {shown}: {reason(error)}.") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedError(f"{shown} is damaged: expected a sweep's manifest; run the sweep again.") from None
    layout.refuse_newer(version, shown)
    try:
        times = {key: datetime.fromisoformat(content[key]) for key in ("started_at", "finished_at")}
        _check(content, times)
        manifest = Manifest(**{**content, **times, "parts": tuple(content["parts"])})
        found = _hash(content)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{shown} is damaged: {error}; run the sweep again.") from error
    for name in manifest.parts:
        if not is_name(name):
            raise DamagedError(f"{shown} is damaged: it lists {name!r} as a part; run the sweep again.")
    if manifest.digest != path.stem:
        raise DamagedError(f"{shown} is damaged: it holds the manifest of sweep {manifest.digest}.")
    if expected not in (None, found):
        raise DamagedError(
            f"{shown} is damaged: its content does not match its SHA-256; run the sweep again."
        )
    return manifest


def _check(content: Mapping[str, Any], times: Mapping[str, datetime]) -> None:
    """Check the types that readers rely on, since manifests of earlier releases have no hash."""
    if not all(time.tzinfo for time in times.values()):
        raise ValueError("its times have no time zone")
    for key, kind in (("name", str), ("digest", str), ("spec", dict), ("counts", dict)):
        if not isinstance(content[key], kind):
            raise TypeError(f"its {key} has the wrong type: {content[key]!r}"[:100])
    json.dumps(content, ensure_ascii=False).encode()  # which has no half of a surrogate pair


def missing(place: Folder, sweep: Manifest, name: str) -> str:
    """Return the sentence about a part that a manifest lists and the store lacks."""
    shown = place.shown(place.data / name)
    return (
        f"{shown} of sweep {sweep.name} is missing: restore it, "
        "or run `privsweep repair` to compute it again."
    )
