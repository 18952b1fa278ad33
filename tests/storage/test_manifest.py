import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from storage import Manifest, StoreError, manifests, open_store, write_manifest
from storage.place.located import located
from tests.storage.made_up import NOON, put, rows

MANIFEST = Manifest(
    digest="0123456789abcdef",
    name="quick",
    spec={"sigma": [1.0, 2.0], "method": "unamplified.exact"},
    counts={"ok": 2, "failed": 1},
    parts=(),
    git_commit="unknown",
    started_at=NOON,
    finished_at=NOON + timedelta(seconds=90),
    status="complete",
)


def test_a_manifest_reads_back_as_it_was_written(root: Path) -> None:
    part = put(root, rows(1))
    manifest = replace(MANIFEST, parts=(str(part.relative_to(root / "data")),))
    path = write_manifest(located(root), manifest)
    assert path == root / "sweeps" / "0123456789abcdef.json"
    with open_store(root) as store:
        assert store.manifests() == manifests(located(root)) == [manifest]
        (shown,) = store.sql("from sweeps").to_pylist()
    assert (shown["name"], shown["status"], shown["parts"]) == ("quick", "complete", 1)
    assert (shown["started_at"], shown["finished_at"]) == (manifest.started_at, manifest.finished_at)
    assert json.loads(shown["counts"]) == manifest.counts
    assert json.loads(shown["spec"]) == manifest.spec


def test_a_sweep_that_runs_again_replaces_its_manifest(root: Path) -> None:
    open_store(root, create=True)
    write_manifest(located(root), replace(MANIFEST, status="incomplete"))
    write_manifest(located(root), replace(MANIFEST, digest="ff00ff00", finished_at=NOON))
    write_manifest(located(root), MANIFEST)
    assert [(m.digest, m.status) for m in manifests(located(root))] == [
        ("ff00ff00", "complete"),
        (MANIFEST.digest, "complete"),
    ]


@pytest.mark.parametrize("digest", ["../../../etc/passwd", "", "abc", "0123456G", "a" * 129, "01234567\n"])
def test_a_digest_that_could_name_another_file_is_refused(digest: str) -> None:
    with pytest.raises(ValueError, match="digest of 8 to 128 hexadecimal digits"):
        replace(MANIFEST, digest=digest)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="status complete or incomplete, got 'done'"):
        replace(MANIFEST, status="done")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema_version": 2}, "has schema version 2, but this release reads 1: update privsweep."),
        ({"schema_version": "x"}, "has an invalid schema version: 'x'."),
        ({"started_at": "noon"}, "is damaged: Invalid isoformat string: 'noon'; run the sweep again."),
        ({"digest": "ff00ff00"}, "is damaged: it holds the manifest of sweep ff00ff00."),
        ({"parts": None}, "is damaged: 'NoneType' object is not iterable; run the sweep again."),
        ({"parts": ["../a.parquet"]}, "is damaged: it lists '../a.parquet' as a part; run the sweep again."),
        ({"parts": ["/etc/passwd"]}, "is damaged: it lists '/etc/passwd' as a part; run the sweep again."),
        ({"parts": [3]}, "is damaged: it lists 3 as a part; run the sweep again."),
        ({"git_commit": "x"}, "is damaged: its content does not match its SHA-256; run the sweep again."),
        ({"sha256": "x"}, "is damaged: its content does not match its SHA-256; run the sweep again."),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused_by_name(
    root: Path, change: dict[str, object], complaint: str
) -> None:
    open_store(root, create=True)
    path = write_manifest(located(root), MANIFEST)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(StoreError) as caught:
        manifests(located(root))
    assert str(caught.value) == f"{path} {complaint}"


def test_a_manifest_of_before_there_were_hashes_is_read(root: Path) -> None:
    open_store(root, create=True)
    path = write_manifest(located(root), MANIFEST)
    content = json.loads(path.read_text())
    del content["sha256"]
    path.write_text(json.dumps(content))
    assert manifests(located(root)) == [MANIFEST]


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("name", 7, "its name has the wrong type: 7"),
        ("counts", [1], r"its counts has the wrong type: \[1\]"),
        ("spec", None, "its spec has the wrong type: None"),
        ("started_at", "2026-11-01T12:00:00", "its times have no time zone"),
    ],
)
def test_a_manifest_without_a_hash_whose_content_is_of_another_kind_is_damaged(
    root: Path, key: str, value: object, complaint: str
) -> None:
    open_store(root, create=True)
    path = write_manifest(located(root), MANIFEST)
    content = json.loads(path.read_bytes())
    del content["sha256"]  # as earlier releases wrote them
    path.write_text(json.dumps(content | {key: value}))
    with pytest.raises(StoreError, match=rf"is damaged: {complaint}; run the sweep again\."):
        manifests(located(root))


def test_json_that_is_nested_too_deeply_is_a_damaged_manifest(root: Path) -> None:
    open_store(root, create=True)
    path = write_manifest(located(root), MANIFEST)
    path.write_text("[" * 200_000)
    with pytest.raises(StoreError, match="is damaged: expected a sweep's manifest"):
        manifests(located(root))
