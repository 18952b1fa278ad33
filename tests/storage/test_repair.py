import warnings
from pathlib import Path

import pytest

from storage import StoreError, open_store, parts, write_manifest
from storage.compaction import compact
from storage.degraded import degraded_reading
from storage.errors import DegradedWarning
from storage.repair import set_aside, told_points, untrue_records
from storage.verify import verify
from tests.storage.contents import kill_at, steps_of
from tests.storage.made_up import epsilon, manifest, put, rows
from tests.storage.test_damage import flip_a_bit


def kinds(root: Path) -> list[str]:
    return sorted(finding.kind for finding in verify(root).findings)


def test_every_kind_of_harm_has_its_name_and_says_what_to_do(root: Path) -> None:
    made = [put(root, rows(4, first=10 * i)) for i in range(6)]
    put(root, rows(2, first=43, seconds_later=5))
    path = write_manifest(root, manifest(*made))
    broken = write_manifest(root, manifest(*made, digest="feedbeef"))
    flip_a_bit(made[0], seed=1)
    made[1].write_bytes(made[1].read_bytes()[:-9])
    made[2].unlink()
    made[3].rename(made[3].with_name("f" * 32 + made[3].name[32:]))
    (root / "data" / "notes.txt").write_text("not ours")
    (made[4].parent / ".part.1.tmp").write_text("half")
    broken.write_text("{")
    report = verify(root)
    assert kinds(root) == [
        *("damaged", "duplicate", "foreign", "leftover", "manifest"),
        *("misnamed", "missing", "missing", "truncated"),
    ]
    assert not report.sound
    assert (report.parts, report.bytes > 0, report.seconds > 0) == (6, True, True)
    for finding in report.findings:
        assert str(root / finding.file) in finding.detail
        assert "; " in finding.detail or ": " in finding.detail, "what is wrong, and what to do"
    assert path.exists()


def test_what_is_harmless_does_not_make_a_store_unsound(root: Path) -> None:
    made = [put(root, rows(3)), put(root, rows(3, first=1, seconds_later=1))]
    (made[0].parent / ".part.1.tmp").write_text("half")
    assert kinds(root) == ["duplicate", "leftover"]
    assert verify(root).sound


def test_a_newer_part_is_not_taken_for_a_damaged_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr("storage.schema.SCHEMA_VERSION", 2)
        put(root, rows(1))
    assert kinds(root) == ["unreadable"]


def test_files_are_set_aside_with_their_names_and_ignored_by_readers(root: Path) -> None:
    kept, damaged = put(root, rows(2)), put(root, rows(2, first=2))
    flip_a_bit(damaged, seed=3)
    content = damaged.read_bytes()
    folder = set_aside(root, [damaged, damaged.with_name("gone")])
    assert folder.parent == root / "quarantine"
    assert (folder / damaged.relative_to(root)).read_bytes() == content
    assert parts(root) == [kept]
    assert open_store(root).verify() == []
    assert set_aside(root, [kept]) != folder, "nothing that was set aside is overwritten"


def test_killed_at_any_step_setting_aside_loses_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files(root: Path) -> list[bytes]:
        return sorted(path.read_bytes() for path in root.rglob("*.parquet"))

    made = [put(tmp_path / "0", rows(2, first=2 * i)) for i in range(2)]
    steps = steps_of(monkeypatch, lambda: set_aside(tmp_path / "0", made))
    for number in range(1, len(steps) + 1):
        root = tmp_path / str(number)
        made = [put(root, rows(2, first=2 * i)) for i in range(2)]
        before = files(root)
        kill_at(monkeypatch, number, lambda root=root, made=made: set_aside(root, made))  # type: ignore[misc]
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
        assert points.keys() <= wanted, "a point proves itself or is not told"
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
    write_manifest(root, manifest(*made))
    compact(root)
    assert untrue_records(root) == []
    (merged,) = parts(root)
    merged.unlink()
    assert kinds(root) == ["missing"]
    set_aside(root, untrue_records(root))
    assert kinds(root) == ["missing", "missing"], "the manifest lists its own parts again"


def test_damage_is_read_around_with_a_warning_for_each_file_where_that_is_allowed(root: Path) -> None:
    made = [put(root, rows(2, first=2 * i)) for i in range(4)]
    broken = write_manifest(root, manifest(digest="feedbeef"))
    write_manifest(root, manifest(*made))
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


def test_a_store_is_opened_for_reading_around_damage_wherever_that_is_allowed(root: Path) -> None:
    flip_a_bit(put(root, rows(2)), seed=1)
    with degraded_reading(), pytest.warns(DegradedWarning), open_store(root) as store:
        assert store.stored("unamplified-epsilon") == {}
    with pytest.raises(StoreError, match="is damaged"):
        open_store(root).stored("unamplified-epsilon")


def test_a_sound_store_is_read_without_a_warning(root: Path) -> None:
    write_manifest(root, manifest(put(root, rows(2))))
    with open_store(root, degraded=True) as store:
        assert store.sql("from results").num_rows == 2
