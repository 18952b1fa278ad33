import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import StoreError, open_store, write_manifest
from storage.compaction import compact, finish
from storage.errors import DegradedWarning
from storage.manifest import Replacement, read_replacement, write_replacement
from storage.parts import ids_hash, parts, survey
from storage.place.folder import Folder
from storage.place.located import located
from storage.verify import Around, set_aside, told_points, untrue_records, verify
from tests.storage.contents import kill_at, steps_of
from tests.storage.made_up import epsilon, manifest, put, read_rows, rows
from tests.storage.test_damage import flip_a_bit


def kinds(root: Path) -> list[str]:
    return sorted(finding.kind for finding in verify(located(root)).findings)


def test_every_kind_of_harm_has_its_name_and_says_what_to_do(root: Path) -> None:
    made = [put(root, rows(4, first=10 * i)) for i in range(6)]
    put(root, rows(2, first=43, seconds_later=5))
    path = write_manifest(located(root), manifest(*made))
    broken = write_manifest(located(root), manifest(*made, digest="feedbeef"))
    flip_a_bit(made[0], seed=1)
    made[1].write_bytes(made[1].read_bytes()[:-9])
    made[2].unlink()
    made[3].rename(made[3].with_name("f" * 32 + made[3].name[32:]))
    (root / "data" / "notes.txt").write_text("not ours")
    (made[4].parent / ".part.1.tmp").write_text("half")
    broken.write_text("{")
    report = verify(located(root))
    assert kinds(root) == [
        *("damaged", "duplicate", "foreign", "leftover", "manifest"),
        *("misnamed", "missing", "missing", "truncated"),
    ]
    assert not report.sound
    assert (report.parts, report.bytes > 0, report.seconds > 0) == (6, True, True)
    for finding in report.findings:
        assert str(root / finding.file) in finding.detail
        assert "; " in finding.detail or ": " in finding.detail, "the damage and the remedy"
    assert path.exists()


def test_what_is_harmless_does_not_make_a_store_unsound(root: Path) -> None:
    made = [put(root, rows(3)), put(root, rows(3, first=1, seconds_later=1))]
    (made[0].parent / ".part.1.tmp").write_text("half")
    assert kinds(root) == ["duplicate", "leftover"]
    assert verify(located(root)).sound


def test_a_newer_part_is_not_taken_for_a_damaged_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr("storage.schema.SCHEMA_VERSION", 2)
        put(root, rows(1))
    assert kinds(root) == ["unreadable"]


def test_files_are_set_aside_with_their_names_and_ignored_by_readers(root: Path) -> None:
    kept, damaged = put(root, rows(2)), put(root, rows(2, first=2))
    flip_a_bit(damaged, seed=3)
    content = damaged.read_bytes()
    folder = set_aside(located(root), [damaged, damaged.with_name("gone")])
    assert folder.parent == root / "quarantine"
    assert (folder / damaged.relative_to(root)).read_bytes() == content
    assert parts(located(root)) == [kept]
    assert open_store(root).verify() == []
    assert set_aside(located(root), [kept]) != folder, "nothing that was set aside is overwritten"


def test_killed_at_any_step_setting_aside_loses_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files(root: Path) -> list[bytes]:
        return sorted(path.read_bytes() for path in root.rglob("*.parquet"))

    made = [put(tmp_path / "0", rows(2, first=2 * i)) for i in range(2)]
    steps = steps_of(monkeypatch, lambda: set_aside(located(tmp_path / "0"), made))
    for number in range(1, len(steps) + 1):
        root = tmp_path / str(number)
        made = [put(root, rows(2, first=2 * i)) for i in range(2)]
        before = files(root)
        kill_at(monkeypatch, number, lambda root=root, made=made: set_aside(located(root), made))  # type: ignore[misc]
        assert files(root) == before, f"step {number}"


def test_a_flipped_bit_in_an_answer_leaves_all_points_known(root: Path) -> None:
    part = put(root, rows(30))
    wanted = {r.point.id for r in rows(30)}
    assert told_points(part)[0].keys() == wanted
    known = 0
    content = part.read_bytes()
    for seed in range(30):
        part.write_bytes(content)
        flip_a_bit(part, seed=seed)
        points, complete = told_points(part)
        assert points.keys() <= wanted, "only proved points are returned"
        assert complete == (points.keys() == wanted)
        known += complete
    assert known >= 10, "most bytes are not those of the fields"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not ours", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_file_that_is_no_part_tells_no_point(root: Path, content: bytes) -> None:
    part = put(root, rows(1))
    part.write_bytes(content)
    assert told_points(part) == ({}, False)


def test_records_of_replacements_that_lead_nowhere_are_found(root: Path) -> None:
    made = [put(root, rows(2, first=2 * i)) for i in range(2)]
    write_manifest(located(root), manifest(*made))
    compact(located(root))
    assert untrue_records(located(root)) == []
    (merged,) = parts(located(root))
    merged.unlink()
    assert kinds(root) == ["missing"]
    set_aside(located(root), untrue_records(located(root)))
    assert kinds(root) == ["missing", "missing"], "the manifest lists its own parts again"


def test_damage_is_read_around_with_a_warning_for_each_file_where_that_is_allowed(root: Path) -> None:
    made = [put(root, rows(2, first=2 * i)) for i in range(4)]
    broken = write_manifest(located(root), manifest(digest="feedbeef"))
    write_manifest(located(root), manifest(*made))
    flip_a_bit(made[0], seed=1)
    made[1].unlink()
    (made[2].parent / "notes.txt").write_text("not ours")
    broken.write_text("{")
    harmed = [made[0], made[1], made[2].parent / "notes.txt", broken]
    with warnings.catch_warnings(record=True) as told, open_store(root, degraded=True) as store:
        warnings.simplefilter("always")
        for _ in range(2):
            assert store.sql("from results").num_rows == 4
            assert len(store.stored("unamplified-epsilon")) == 4
            assert store.lookup(epsilon(sigma=1.05)) is not None
        assert [m.digest for m in store.manifests()] == ["0123abcd"]
    assert {w.category for w in told} == {DegradedWarning}
    assert len(told) == len(harmed)
    for path in harmed:
        assert any(str(path) in str(warning.message) for warning in told)
    with open_store(root) as store, pytest.raises(StoreError, match="is damaged"):
        store.sql("from results")


def test_a_file_that_is_left_out_is_told_once_to_whoever_asked_for_it(root: Path) -> None:
    flip_a_bit(put(root, rows(2)), seed=1)
    told: list[str] = []
    with open_store(root, degraded=told.append) as store:
        for _ in range(2):
            assert store.stored("unamplified-epsilon") == {}
    (sentence,) = told
    assert "is damaged" in sentence
    with pytest.raises(StoreError, match="is damaged"):
        open_store(root).stored("unamplified-epsilon")


def test_a_sound_store_is_read_without_a_warning(root: Path) -> None:
    write_manifest(located(root), manifest(put(root, rows(2))))
    with open_store(root, degraded=True) as store:
        assert store.sql("from results").num_rows == 2


PART = f"data/problem=unamplified-epsilon/{'0' * 32}-{'1' * 64}.parquet"


def make_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", [Path.mkdir, make_link, os.mkfifo], ids=["folder", "link", "pipe"])
@pytest.mark.parametrize("name", [PART, "data/other", "sweeps/x.json", "replaced/x.json"])
def test_what_is_no_file_is_found_waited_for_by_nobody_and_set_aside(
    root: Path, make: Callable[[Path], None], name: str
) -> None:
    kept = put(root, rows(2))
    (root / name).parent.mkdir(exist_ok=True)
    make(root / name)
    (finding,) = verify(located(root)).findings
    assert (finding.kind, finding.file) == ("foreign", name)
    with open_store(root, degraded=True) as store, pytest.warns(DegradedWarning, match=Path(name).name):
        assert store.sql("from results").num_rows == 2
    assert told_points(root / name) == ({}, False)
    folder = set_aside(located(root), [root / name])
    assert os.path.lexists(folder / name)
    assert open_store(root).verify() == []
    assert parts(located(root)) == [kept]


def test_a_link_to_another_folder_of_the_store_is_set_aside_without_the_parts_behind_it(root: Path) -> None:
    kept = put(root, rows(2))
    link = root / "data" / "problem=poisson-epsilon"
    link.symlink_to(kept.parent.name)
    (kept.parent / "notes.txt").write_text("not ours")
    assert {f.file for f in verify(located(root)).findings} == {
        str(link.relative_to(root)),
        str((kept.parent / "notes.txt").relative_to(root)),
    }
    set_aside(located(root), [root / finding.file for finding in verify(located(root)).findings])
    assert verify(located(root)).findings == []
    assert parts(located(root)) == [kept]


@pytest.mark.parametrize(
    "content",
    [
        *(["old"], 7, {"schema_version": 1, "old": []}, {"schema_version": 1, "old": 7, "new": []}),
        *(
            {"schema_version": 1, "old": [name], "new": []}
            for name in ("../../mine", "/mine", PART[5:] + "x", 7)
        ),
    ],
    ids=str,
)
def test_a_record_that_lists_what_can_be_no_part_is_refused_by_name(root: Path, content: object) -> None:
    put(root, rows(1))
    text = json.dumps(content).encode()
    path = root / "replaced" / f"{hashlib.blake2b(text, digest_size=16).hexdigest()}.json"
    path.parent.mkdir()
    path.write_bytes(text)
    (finding,) = verify(located(root)).findings
    assert (finding.kind, finding.file) == ("manifest", str(path.relative_to(root)))
    assert finding.detail.startswith(f"{path} is damaged: ")
    with pytest.raises(StoreError, match="is damaged"):
        compact(located(root))


def test_a_record_that_leads_to_no_part_while_an_old_one_is_there_is_found(root: Path) -> None:
    part = put(root, rows(2))
    record = write_replacement(
        located(root),
        Replacement(old=(f"{part.parent.name}/{part.name}",), new=(PART.removeprefix("data/"),)),
    )
    (finding,) = verify(located(root)).findings
    assert (finding.kind, finding.file) == ("manifest", str(record.relative_to(root)))
    with pytest.raises(StoreError):
        compact(located(root))
    set_aside(located(root), untrue_records(located(root)))
    assert verify(located(root)).findings == []
    assert compact(located(root)) == []


def test_records_in_a_circle_hide_no_missing_part(root: Path) -> None:
    made = [put(root, rows(2, first=2 * i)) for i in range(2)]
    names = [f"{part.parent.name}/{part.name}" for part in made]
    write_manifest(located(root), manifest(*made))
    for old, new in (names, names[::-1]):
        write_replacement(located(root), Replacement(old=(old,), new=(new,)))
    assert kinds(root) == ["manifest", "manifest"]
    finish(located(root))
    assert parts(located(root)) == sorted(made), "nothing is deleted"
    made[0].unlink()
    assert kinds(root) == ["manifest", "manifest", "missing"]
    with pytest.raises(StoreError, match="is missing"):
        open_store(root).sql("from results")
    set_aside(located(root), untrue_records(located(root)))
    assert kinds(root) == ["missing"]


def test_a_record_is_not_called_untrue_because_others_merge_its_part_meanwhile(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in (0, 2):
        put(root, rows(2, first=first))
    compact(located(root))

    def slow(place: Folder, path: Path) -> Replacement:
        made = read_replacement(place, path)
        monkeypatch.setattr("storage.verify.read_replacement", read_replacement)
        put(root, rows(2, first=4))
        compact(located(root))
        return made

    monkeypatch.setattr("storage.verify.read_replacement", slow)
    assert untrue_records(located(root)) == []


@pytest.mark.parametrize(
    "table",
    [
        {"problem": [[1], [2]]},
        {"problem": ["unamplified-epsilon"] * 2, "point_id": ["x", "y"]},
        {"problem": [None, None], "point_id": ["x", "y"]},
        {
            "problem": ["unamplified-epsilon"],
            "point_id": ["x"],
            "method": ["unamplified.exact"],
            "knobs": ["[" * 9999],
        },
    ],
    ids=["lists", "without-columns", "without-problem", "deep"],
)
def test_a_parquet_file_of_others_tells_no_point(root: Path, table: dict[str, list[object]]) -> None:
    path = put(root, rows(1)).with_name("other.parquet")
    pq.write_table(pa.table(table), path)
    assert told_points(path) == ({}, False)


def test_a_name_of_a_column_that_is_damaged_tells_no_point(root: Path) -> None:
    part = put(root, rows(3))
    part.write_bytes(part.read_bytes().replace(b"knobs", b"knobz"))
    assert told_points(part) == ({}, False)


def test_a_part_that_is_misnamed_tells_all_its_points_and_is_not_read_around_damage(root: Path) -> None:
    part = put(root, rows(3))
    part = part.rename(part.with_name("0" * 32 + part.name[32:]))
    points, complete = told_points(part)
    assert (len(points), complete) == (3, True)
    with (
        open_store(root, degraded=True) as store,
        pytest.warns(DegradedWarning, match="that do not match the hash"),
    ):
        assert store.stored("unamplified-epsilon") == {}


@pytest.mark.parametrize("listed", [False, True], ids=["orphans", "of-a-sweep"])
def test_who_reads_around_damage_misses_no_row_of_parts_that_are_replaced_meanwhile(
    root: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    made = [put(root, rows(2, first=2 * i)) for i in range(3)]
    if listed:
        write_manifest(located(root), manifest(*made))
    records = Around.manifests

    def compacted_after(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            found = function(*arguments)
            monkeypatch.setattr("storage.verify.survey", survey)
            monkeypatch.setattr("storage.verify.Around.manifests", records)
            compact(located(root))
            return found

        return call

    with open_store(root, degraded=True) as store:
        monkeypatch.setattr("storage.verify.survey", compacted_after(survey))
        assert len(store.stored("unamplified-epsilon")) == 6
    put(root, rows(2, first=6))
    with open_store(root, degraded=True) as store:
        monkeypatch.setattr("storage.verify.Around.manifests", compacted_after(records))
        assert store.sql("from results").num_rows == 8


def test_a_part_of_a_problem_of_others_without_results_is_found(root: Path) -> None:
    part = put(root, rows(1))
    metadata = {b"privsweep.schema_version": b"1", b"privsweep.problem": b"others"}
    folder = root / "data" / "problem=others"
    folder.mkdir()
    pq.write_table(pa.table({"point_id": ["x"]}).replace_schema_metadata(metadata), folder / "x")
    content = (folder / "x").read_bytes()
    other = (folder / "x").rename(folder / f"{ids_hash(['x'])}-{hashlib.sha256(content).hexdigest()}.parquet")
    (finding,) = verify(located(root)).findings
    assert (finding.kind, finding.file) == ("foreign", str(other.relative_to(root)))
    assert verify(located(root)).rows == len(read_rows(part))


def test_a_part_that_has_lost_rows_does_not_prove_all_of_its_points(root: Path) -> None:
    """Every row that is left proves itself, but the name promises more."""
    part = put(root, rows(3))
    left = pq.read_table(part).slice(0, 2)
    pq.write_table(left, part)
    points, complete = told_points(part)
    assert points.keys() == set(left["point_id"].to_pylist())
    assert not complete
