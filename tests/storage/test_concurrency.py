import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from storage import open_store, write_manifest
from storage.parts import parts, survey
from storage.place.folder import Folder
from storage.place.located import located
from tests.faults.children import FORKED
from tests.storage.made_up import epsilon, manifest, put, rows


def ask(root: Path, start: Barrier, answers: "multiprocessing.Queue[tuple[int, bool, int]]") -> None:
    start.wait(timeout=60)
    with open_store(root) as store:
        count = store.sql("select count(*) as n from results").to_pylist()[0]["n"]
        answers.put((count, store.lookup(epsilon()) is not None, len(store.stored("unamplified-epsilon"))))


@pytest.mark.thorough
def test_processes_that_open_one_store_at_the_same_time_all_get_the_answer(root: Path) -> None:
    put(root, rows(500))
    start, answers = FORKED.Barrier(3), FORKED.Queue()
    readers = [FORKED.Process(target=ask, args=(root, start, answers)) for _ in range(3)]
    for reader in readers:
        reader.start()
    assert [answers.get(timeout=60) for _ in readers] == [(500, True, 500)] * 3
    for reader in readers:
        reader.join()
        assert reader.exitcode == 0


def write(root: Path, start: Barrier, first: int) -> None:
    start.wait(timeout=60)
    for step in range(first, first + 300, 10):
        # Every part overlaps its neighbours, and those of the other writer.
        part = put(root, rows(20, first=step, seconds_later=first))
        write_manifest(located(root), manifest(part, digest=f"{first:04x}{step:04x}"))


@pytest.mark.thorough
def test_writers_and_readers_of_one_store_do_not_disturb_one_another(root: Path) -> None:
    open_store(root, create=True)
    start = FORKED.Barrier(3)
    writers = [FORKED.Process(target=write, args=(root, start, first)) for first in (0, 150)]
    for writer in writers:
        writer.start()
    start.wait(timeout=60)
    seen = 0
    with open_store(root) as store:
        while any(writer.is_alive() for writer in writers):
            count, points = store.sql("select count(*), count(distinct point_id) from results").columns
            assert count[0].as_py() == points[0].as_py() >= seen
            seen = count[0].as_py()
            assert store.verify() == []
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        assert {r.point.id for r in rows(460)} == store.stored("unamplified-epsilon").keys()
        assert store.sql("from results").num_rows == 460
        assert store.verify() == []
    assert len(parts(located(root))) == 60
    assert not list(root.rglob("*.tmp"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("listing", ["storage.sql.snapshot.parts", "storage.verify.survey"])
def test_a_sweep_that_ends_while_a_reader_looks_is_not_taken_for_a_damaged_one(
    root: Path, monkeypatch: pytest.MonkeyPatch, listing: str
) -> None:
    put(root, rows(1))
    listed = {"storage.sql.snapshot.parts": parts, "storage.verify.survey": survey}[listing]

    def list_before_the_sweep_ends(place: Folder) -> object:
        found = listed(place)
        write_manifest(located(root), manifest(put(root, rows(1, first=1))))
        return found

    monkeypatch.setattr(listing, list_before_the_sweep_ends)
    with open_store(root) as store:
        assert store.verify() == []
        assert store.sql("from results").num_rows in (1, 2)
