import json
import math
import os
import shutil
import time
from itertools import combinations_with_replacement, product
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from privcore import PROBLEMS, Answer, Bracket, Status, find, intersect
from privcore.registry import registered
from storage import Row, Store, StoreError, open_store, publish, to_table, write_manifest
from storage.catalog import _stamp
from storage.compaction import compact
from storage.garbage import collect, find_garbage
from storage.parts import parts
from storage.place.located import located
from storage.schema import PROBLEM_KEY
from storage.sql.build import _empty
from tests.storage.made_up import NOON, Claims, epsilon, manifest, put, row, rows

pytestmark = pytest.mark.sampled(4)

VIEWS = [
    *("results", "best", "conflicts", "failures", "imported", "provenance", "superseded", "sweeps"),
    "assumptions",
]


def rows_of(store: Store, query: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = store.sql(query).to_pylist()
    return answer


def test_an_empty_store_has_every_view_with_no_row(root: Path) -> None:
    with open_store(root, create=True) as store:
        views = VIEWS + [problem.name.replace("-", "_") for problem in PROBLEMS]
        for view in views:
            assert store.sql(f"select * from {view}").num_rows == 0
        names = [r["name"] for r in rows_of(store, "show tables")]
        assert sorted(names) == sorted(views)
        assert store.stored("unamplified-epsilon") == {}
        assert store.lookup(epsilon()) is None
        assert store.verify() == []
        assert store.manifests() == []


def test_opening_a_store_twice_changes_nothing(root: Path) -> None:
    open_store(root, create=True)
    mark = (root / "store.json").stat()
    open_store(root, create=True)
    assert (root / "store.json").stat().st_mtime_ns == mark.st_mtime_ns
    assert json.loads((root / "store.json").read_text()) == {"format": "privsweep store", "schema_version": 1}


def test_a_path_that_is_no_store_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    full = tmp_path / "full"
    full.mkdir()
    (full / "photo.jpg").touch()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "store.json").write_text("{")
    cases: list[tuple[str | Path, bool, str]] = [
        (tmp_path / "none", False, f"No store found at {tmp_path}/none."),
        (file, False, f"Expected a folder for the store, got the file {file}."),
        (file, True, f"Expected a folder for the store, got the file {file}."),
        (file / "below", True, f"Cannot read the store '{file}/below': Not a directory."),
        (full, False, f"{full} is not a store: it has no store.json."),
        (full, True, f"Expected a store or an empty folder, got {full}, which has photo.jpg."),
        (broken, False, f"{broken}/store.json is damaged: expected JSON with schema_version."),
        ("a\0b", True, "Cannot read the store 'a\\x00b': embedded null byte."),
    ]
    for path, create, sentence in cases:
        with pytest.raises(StoreError) as caught:
            open_store(path, create=create)
        assert str(caught.value) == sentence
    with pytest.raises(StoreError, match="File name too long"):
        open_store("x" * 300, create=True)


@pytest.mark.parametrize("create", [False, True])
def test_a_store_of_a_newer_release_is_refused_with_both_versions(root: Path, create: bool) -> None:
    open_store(root, create=True)
    (root / "store.json").write_text(json.dumps({"schema_version": 2}))
    with pytest.raises(StoreError) as caught:
        open_store(root, create=create)
    assert str(caught.value) == f"{root} has schema version 2, but this release reads 1: update privsweep."


def test_a_store_that_was_deleted_while_open_is_not_taken_for_an_empty_one(root: Path) -> None:
    put(root, rows(2))
    with open_store(root) as store:
        assert store.sql("from results").num_rows == 2
        shutil.rmtree(root)
        with pytest.raises(StoreError, match="No store found"):
            store.sql("from results")


def test_views_have_the_documented_columns(root: Path) -> None:
    put(root, rows(1))
    with open_store(root) as store:
        columns = store.sql("from results").column_names
        assert columns[:7] == [
            *("point_id", "problem_id", "problem", "method", "method_version", "knobs"),
            next(iter(PROBLEMS[0].parameters)),
        ]
        assert {n for p in PROBLEMS for n in p.parameters} < set(columns)
        assert columns[-16:] == [
            *("lower", "upper", "value", "confidence", "status", "detail", "seconds", "cpu_seconds"),
            *("attempt", "finished_at", "sweep", "git_commit", "git_dirty", "versions", "host", "part"),
        ]
        of_problem = store.sql("from unamplified_epsilon")
        assert set(of_problem.column_names) <= set(columns)
        assert of_problem["part"].to_pylist() == [
            str(p.relative_to(root / "data")) for p in root.rglob("*.parquet")
        ]
        ends = ["lower", "upper", "lower_method", "upper_method", "lower_point", "upper_point"]
        assert store.sql("from best").column_names[-6:] == ends


BEST_FIRST = [
    {Status.OK},
    {Status.NOT_APPLICABLE},
    {Status.FAILED, Status.TIMEOUT, Status.OUT_OF_MEMORY},
    {Status.CRASHED},
]
RANKS = {status: rank for rank, equals in enumerate(BEST_FIRST) for status in equals}


def answered(status: Status) -> Answer:
    return Answer.enclosure(1, 2) if status is Status.OK else Answer.without(status, "why")


def test_of_several_rows_of_a_point_the_best_status_counts_then_the_earliest_then_the_first_part(
    root: Path,
) -> None:
    wanted = {}
    of_writer: dict[str, list[Row]] = {"late": [], "early": []}
    for number, (early, late) in enumerate(product(Status, Status), start=1):
        problem = epsilon(sigma=number)
        of_writer["early"].append(row(problem, answered(early), seconds_later=1.5, sweep="early"))
        of_writer["late"].append(row(problem, answered(late), seconds_later=2.5, sweep="late"))
        wanted[float(number)] = ("late", late) if RANKS[late] < RANKS[early] else ("early", early)
    for content in of_writer.values():
        put(root, content)
    same_time = [put(root, [row(epsilon(sigma=100)), row(epsilon(sigma=200 + i))]) for i in range(3)]
    with open_store(root) as store:
        assert RANKS.keys() == set(Status)
        found = {r["sigma"]: r for r in rows_of(store, "from results")}
        assert {s: (found[s]["sweep"], found[s]["status"]) for s in wanted} == wanted
        assert found[100]["part"].endswith(min(p.name for p in same_time))
        by_id = {r["point_id"]: r["status"] for r in found.values()}
        assert store.stored("unamplified-epsilon") == by_id
        assert len(by_id) == store.sql("from unamplified_epsilon").num_rows == len(wanted) + 4
        failed = [s for s, (_, status) in wanted.items() if RANKS[status] >= RANKS[Status.FAILED]]
        assert sorted(store.sql("from failures")["sigma"].to_pylist()) == failed


@pytest.mark.sampled(1)
def test_of_several_successes_the_earliest_makes_the_bracket(root: Path) -> None:
    for content in (
        row(epsilon(), Answer.without(Status.CRASHED, "gone")),
        row(epsilon(), Answer.enclosure(1, 3), seconds_later=30),
        row(epsilon(), Answer.enclosure(1, 2), seconds_later=20),
    ):
        put(root, content)
    with open_store(root) as store:
        assert store.sql("from results")["upper"].to_pylist() == [2]
        assert store.sql("from best")["upper"].to_pylist() == [2]


@pytest.mark.sampled(1)
def test_best_is_the_intersection_of_all_proofs_and_names_their_methods(root: Path) -> None:
    put(
        root,
        [
            row(epsilon(), Answer.enclosure(1.0, 3.0)),
            row(epsilon(), Answer.at_most(2.0), method=Claims()),
            row(epsilon(), Answer.at_least(0.5), method=Claims(number=1)),
            row(epsilon(sigma=2), Answer.at_most(2.5), method=Claims()),
            row(epsilon(sigma=3), Answer.at_least(math.inf), method=Claims()),
        ],
    )
    with open_store(root) as store:
        best = rows_of(
            store, "select sigma, lower, upper, lower_method, upper_method from best order by sigma"
        )
        assert [tuple(r.values()) for r in best] == [
            (1, 1.0, 2.0, "unamplified.exact", "test.claims"),
            (2, 0.0, 2.5, None, "test.claims"),
            (3, math.inf, math.inf, "test.claims", None),
        ]


def test_best_says_what_intersect_says_of_the_same_proofs(root: Path) -> None:
    methods = [Claims(number=k) for k in range(3)] + [find("unamplified.exact")()]
    ends = [0.0, 1.0, 1.5, 2.0, math.inf]
    answers = [Answer.enclosure(low, high) for low, high in combinations_with_replacement(ends, 2)]
    answers += [Answer.enclosure(1.2, 1.3, confidence=0.9), Answer.about(1.0, detail="a guess")]
    said = {  # some contradict one another, and some have no proof
        epsilon(sigma=k): list(zip(methods, Random(k).choices(answers, k=len(methods)), strict=True))
        for k in range(1, 101)
    }
    put(root, [row(problem, each, method=m) for problem, several in said.items() for m, each in several])
    wanted = {}
    for problem, several in said.items():
        proofs = [each.said_by(method.name) for method, each in several if each.rigorous]
        if any(proof.lower > 0.0 or proof.upper < math.inf for proof in proofs):
            wanted[problem.as_fields()["sigma"]] = intersect(proofs)
    assert {bracket.crossed for bracket in wanted.values()} == {True, False}
    with open_store(root) as store:
        best = rows_of(store, "from best")
    found = {
        row["sigma"]: Bracket(
            lower=row["lower"],
            upper=row["upper"],
            lower_by=row["lower_method"] or "",
            upper_by=row["upper_method"] or "",
        )
        for row in best
    }
    assert found == wanted


@pytest.mark.sampled(1)
def test_what_is_not_a_proof_makes_no_bracket(root: Path) -> None:
    put(
        root,
        [
            row(epsilon(sigma=1), Answer.about(1.5, detail="a guess")),
            row(epsilon(sigma=2), Answer.enclosure(1.0, 1.1, confidence=0.999999)),
            row(epsilon(sigma=3), Answer.without(Status.FAILED, "no")),
            row(epsilon(sigma=4), Answer.without(Status.NOT_APPLICABLE, "no")),
            row(epsilon(sigma=5), Answer.enclosure(1.4, 1.6)),
            row(epsilon(sigma=5), Answer.about(9.0, detail="a guess"), method=Claims()),
            row(epsilon(sigma=5), Answer.enclosure(7, 8, confidence=0.5), method=Claims(number=1)),
        ],
    )
    with open_store(root) as store:
        best = rows_of(store, "select sigma, lower, upper from best")
        assert best == [{"sigma": 5, "lower": 1.4, "upper": 1.6}]
        assert store.sql("from conflicts").num_rows == 0
        assert store.sql("from failures")["sigma"].to_pylist() == [3]
        assert store.lookup(epsilon(sigma=0.5)) is not None  # from sigma 5, below
        assert store.lookup(epsilon(sigma=4, delta=0.5)) is None


def test_disjoint_proofs_are_conflicts_and_no_lookup_trusts_them(root: Path) -> None:
    put(
        root,
        [
            row(epsilon(), Answer.enclosure(1.0, 2.0)),
            row(epsilon(), Answer.enclosure(2.5, 3.0), method=Claims()),
            row(epsilon(), Answer.enclosure(1.5, 2.75), method=Claims(number=1)),
            row(epsilon(sigma=2), Answer.enclosure(1.0, 2.0)),
        ],
    )
    with open_store(root) as store:
        (conflict,) = rows_of(store, "from conflicts")
        assert (conflict["problem"], conflict["sigma"]) == ("unamplified-epsilon", 1)
        assert (conflict["lower"], conflict["lower_method"]) == (2.5, "test.claims")
        assert (conflict["upper"], conflict["upper_method"]) == (2.0, "unamplified.exact")
        with pytest.raises(
            StoreError, match=r"contradicts itself .* at least 2.5 .* at most 2.0 .* conflicts"
        ):
            store.lookup(epsilon())


class Repaired(Claims):
    version: ClassVar[int] = 2


@pytest.mark.thorough
def test_what_an_older_version_of_a_method_claimed_is_kept_but_no_longer_relied_on(root: Path) -> None:
    put(root, [row(epsilon(), Answer.enclosure(1, 1.5), method=Claims())])
    put(root, [row(epsilon(), Answer.enclosure(2, 2.5), method=Repaired())])
    with open_store(root) as store:
        assert store.sql("from conflicts").num_rows == 1
    with registered(Repaired), open_store(root) as store:
        assert store.sql("from results").num_rows == 2
        assert store.sql("from conflicts").num_rows == 0
        assert store.sql("select lower, upper from best").to_pylist() == [{"lower": 2, "upper": 2.5}]


def test_provenance_sums_up_who_computed_what(root: Path) -> None:
    put(root, [row(epsilon(sigma=s), seconds_later=s) for s in (1.0, 2.0)])
    put(root, row(epsilon(), method=Claims()))
    with open_store(root) as store:
        first, second = rows_of(store, "from provenance order by method")
        assert (first["method"], first["points"], first["seconds"]) == ("test.claims", 1, 0.25)
        assert (second["method"], second["points"], second["cpu_seconds"]) == ("unamplified.exact", 2, 0.25)
        assert (second["last_finished_at"] - second["first_finished_at"]).total_seconds() == 1.0
        assert first["first_finished_at"] == NOON


def test_rows_of_a_problem_that_this_release_does_not_know_stay_visible(root: Path) -> None:
    part = put(root, rows(2))
    table = to_table(rows(3))
    metadata = {**table.schema.metadata, PROBLEM_KEY: b"quantum-epsilon"}
    place = table.column_names.index("problem")
    later = pa.array(["quantum-epsilon"] * 3, table.schema.field(place).type)
    table = table.set_column(place, "problem", later).rename_columns({"sigma": "noise"})
    table = table.replace_schema_metadata(metadata)
    publish(located(root), table.slice(0, 1))
    publish(
        located(root), table.slice(1, 2).append_column("qubits", pa.array([5, 6]))
    )  # a field that came later
    with open_store(root) as store:
        assert store.sql("from quantum_epsilon")["qubits"].to_pylist() == [None, 5, 6]
        assert store.sql("select noise, sigma from results").num_rows == 5
        assert store.verify() == []
    assert part.exists()


def test_an_open_store_sees_what_is_published_later(root: Path) -> None:
    with open_store(root, create=True) as store:
        for count in range(1, 6):
            put(root, rows(1, first=count))
            assert store.sql("from results").num_rows == count
            assert len(store.stored("unamplified-epsilon")) == count
            assert store.lookup(epsilon(sigma=1 + count / 100)) is not None


def test_a_store_that_was_closed_can_be_used_again(root: Path) -> None:
    put(root, rows(2))
    store = open_store(root)
    for _ in range(2):
        assert store.sql("from results").num_rows == 2
        store.close()


def test_the_points_of_each_part_are_told_by_their_fields(root: Path) -> None:
    first, second = put(root, rows(3)), put(root, row(epsilon(sigma=9.0), method=Claims(number=7)))
    names = sorted(str(p.relative_to(root / "data")) for p in (first, second))
    kind = type(epsilon())
    with open_store(root) as store:
        assert store.names("unamplified-epsilon") == names
        assert store.names("unamplified-delta") == []
        found = {points.part: points for points in store.points(kind)}
        (other,) = store.points(kind, without=[str(first.relative_to(root / "data"))])
    assert sorted(found) == names
    assert sorted(value for points in found.values() for value in points.fields["sigma"]) == [
        1,
        1.01,
        1.02,
        9,
    ]
    assert (other.methods, other.statuses) == ((("test.claims", 1, '{"number":7}'),), ("ok",))
    assert other.fields["adjacency"].tolist() == ["add-remove"]


def test_the_cache_can_be_deleted_spoiled_or_impossible(root: Path) -> None:
    put(root, rows(3))
    for spoil in ("delete", "garbage", "impossible"):
        with open_store(root) as store:
            assert store.sql("from results").num_rows == 3
        shutil.copytree(root / "cache", root / "copy")
        shutil.rmtree(root / "cache")
        if spoil == "garbage":
            (root / "cache").mkdir()
            for name in (root / "copy").iterdir():
                (root / "cache" / name.name).write_bytes(b"not a database" * 1000)
        elif spoil == "impossible":
            (root / "cache").write_text("a file where the folder would be")
        shutil.rmtree(root / "copy")
        with open_store(root) as store:
            assert store.sql("from results").num_rows == 3
            assert store.lookup(epsilon()) is not None


@pytest.mark.thorough
def test_a_snapshot_needs_no_room_outside_of_the_store(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(root / "missing"))
    _empty.cache_clear()
    for count in (1, 2):  # the second snapshot begins as a copy
        put(root, rows(1, first=count))
        with open_store(root) as store:
            assert store.sql("from results").num_rows == count
            assert store.sql("from best").num_rows == count


@pytest.mark.thorough
def test_old_snapshots_do_not_pile_up(root: Path) -> None:
    for count in range(6):
        put(root, rows(1, first=count))
        with open_store(root) as store:
            assert store.sql("from results").num_rows == count + 1
    assert len(list((root / "cache").iterdir())) <= 2


def test_every_row_of_more_than_a_row_group_is_seen(root: Path) -> None:
    several = to_table(rows(1000))
    ids = [f"{i:032x}" for i in range(131_000)]
    table = pa.concat_tables([several] * 131).set_column(0, several.schema.field(0), pa.array(ids))
    for start, length in [(0, 100_000), (100_000, 30_000), (130_000, 1000)]:
        publish(located(root), table.slice(start, length))
    with open_store(root) as store:
        counts = store.sql("select count(*), count(distinct point_id), count(distinct part) from results")
        assert [column[0].as_py() for column in counts.columns] == [131_000, 131_000, 3]
        assert store.stored("unamplified-epsilon").keys() == set(ids)
        assert store.sql("from best").num_rows == 1000


def test_a_store_held_still_shows_one_state_and_the_next_one_afterwards(root: Path) -> None:
    put(root, rows(3))
    with open_store(root) as store:
        with store.unchanged():
            put(root, rows(2, first=3))
            assert len(store.sql("from results")) == 3
        assert len(store.sql("from results")) == 5


def test_a_store_is_written_and_read_by_a_relative_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    for relative in (Path("near"), Path("deeper/store")):
        write_manifest(located(relative), manifest(put(relative, rows(3))))
        put(relative, rows(3, first=2, seconds_later=9))
        with open_store(relative) as store:
            assert store.sql("from results").num_rows == len(store.stored("unamplified-epsilon")) == 5
            compact(store.place)
            collect(store.place, find_garbage(store.place, older_than=0.0))
            assert len(parts(store.place)) == 1
            assert store.verify() == []
            assert [sweep.name for sweep in store.manifests()] == ["made-up"]


@pytest.mark.sampled(1)
def test_a_folder_that_has_changed_within_two_seconds_is_looked_into_again(root: Path) -> None:
    """Its time may not move with the next change: some file systems count in seconds."""
    put(root, rows(1))
    place = located(root)
    assert _stamp(place) is None
    folders = [root / "data", *(root / "data").iterdir()]
    for ago, known in ((1.0, False), (60.0, True)):
        for path in folders:
            os.utime(path, (time.time() - ago,) * 2)
        assert (_stamp(place) is not None) == known
