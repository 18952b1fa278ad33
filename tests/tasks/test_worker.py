"""A worker on another machine: its code, its access to the store, and its behaviour without access."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from privcore import find, find_problem
from storage import open_store
from storage.parts import parts, publish_packed
from storage.place.located import located, shared_store_token, store_with
from storage.schema import Provenance
from tasks import probe, worker
from tasks.batch import Batch
from tasks.dispatch import Dispatch
from tasks.errors import EngineError
from tasks.guard import Limits
from tasks.health import ClusterInfo
from tasks.sources import code
from tasks.work import Job, delivered, names_of_parts, published
from tasks.worker import Requirements, run_on_worker, why_other_code
from tests.storage.made_up import read_rows

PROBLEM = find_problem("unamplified-epsilon")


@pytest.fixture
def job() -> Job:
    return Job(sweep="elsewhere", limits=Limits())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def batch() -> Batch:
    problems = [PROBLEM.from_fields({"sigma": sigma, "delta": 1e-5}) for sigma in (1, 2, 3)]
    fields = [tuple(problem.as_fields().values()) for problem in problems]
    method = find("unamplified.exact")()
    return Batch(problem=PROBLEM, method=method, fields=fields, seconds=1.0, bytes=0.0)


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    yield
    if worker._guard is not None:
        worker._guard.close()
        worker._guard = None


def test_a_token_is_seen_in_its_own_store_only_and_only_while_it_is_kept(tmp_path: Path) -> None:
    store, twin = tmp_path / "a" / "store", tmp_path / "b" / "store"
    open_store(twin, create=True).close()
    with shared_store_token(located(store)) as token:
        assert store_with(str(store), token)
        assert not store_with(str(twin), token)
        assert not store_with(str(tmp_path / "nowhere"), token)
        with open_store(store) as opened:
            assert opened.verify() == []
    assert not store_with(str(store), token)
    assert [path.name for path in store.iterdir()] == ["store.json"]


def test_a_token_never_becomes_so_old_that_another_run_clears_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.place.located.TENDED_EVERY", 0.02)
    with shared_store_token(located(tmp_path)) as token:
        (path,) = tmp_path.glob(".*.tmp")
        os.utime(path, (0, 0))
        give_up = time.monotonic() + 20
        while located(tmp_path).leftovers() and time.monotonic() < give_up:
            time.sleep(0.01)
        assert located(tmp_path).leftovers() == []
        path.unlink()
        while not path.exists() and time.monotonic() < give_up:
            time.sleep(0.01)
        assert store_with(str(tmp_path), token)
    assert not path.exists()


@pytest.mark.thorough
def test_a_bucket_is_seen_from_where_it_can_be_reached(address: str) -> None:
    with shared_store_token(located(Path(address))) as token:
        assert store_with(address, token)
        assert not store_with("s3://no-such-bucket/store", token)


def test_a_worker_that_does_not_see_the_store_returns_the_part_that_it_would_publish(
    job: Job, batch: Batch, store: Path, tmp_path: Path
) -> None:
    with shared_store_token(located(tmp_path / "another")) as token:
        done = run_on_worker(batch, job, str(store), Requirements(code=code(), token=token))
    assert not store.exists()
    assert done.packed is not None
    here = delivered(done, located(store))
    (path,) = parts(located(store))
    assert (here.packed, here.part, here.points) == (None, path.name, 3)
    assert path.read_bytes() == done.packed.content
    assert publish_packed(located(store), done.packed) == path, "twice is the same as once"


def test_a_worker_that_sees_the_store_publishes(job: Job, batch: Batch, store: Path) -> None:
    with shared_store_token(located(store)) as token:
        done = run_on_worker(batch, job, str(store), Requirements(code=code(), token=token))
    assert done.packed is None
    assert [path.name for path in parts(located(store))] == [done.part]


def test_rows_of_code_that_was_sent_tell_where_it_came_from_and_who_ran_it(
    job: Job, batch: Batch, store: Path
) -> None:
    sent = Provenance(git_commit="c0ffee", git_dirty=False, versions="{}", host="driver")
    run_on_worker(batch, replace(job, code=sent), str(store), None)
    (path,) = parts(located(store))
    rows = read_rows(path, ["git_commit", "git_dirty", "versions", "host"]).to_pylist()
    assert {(row["git_commit"], row["git_dirty"], row["versions"]) for row in rows} == {
        ("c0ffee", False, "{}")
    }
    assert "driver" not in {row["host"] for row in rows}


@pytest.mark.parametrize(
    ("digest", "versions", "sentence"),
    [
        ("", {}, None),
        ("other", {}, "Node n7 of the Ray cluster has different code of privsweep than this machine."),
        ("", {"numpy": "1.0"}, "Node n7 of the Ray cluster has numpy 1.0 but this machine has"),
        ("", {"python": "3.12.1"}, "Node n7 of the Ray cluster has python 3.12.1 but this machine has"),
        ("", {"privsweep": "9", "further": "1"}, None),
    ],
)
def test_what_could_change_bits_is_refused(
    digest: str, versions: dict[str, str], sentence: str | None
) -> None:
    ours = code()
    found = why_other_code("n7", digest or ours.digest, ours.versions | versions, ours)
    assert found is None if sentence is None else found is not None and found.startswith(sentence)


def test_a_worker_with_other_code_evaluates_nothing(job: Job, batch: Batch, store: Path) -> None:
    with pytest.raises(EngineError, match="different code of privsweep"):
        run_on_worker(
            batch, job, str(store), Requirements(code=replace(code(), digest="of others"), token="")
        )
    assert not store.exists()


def test_a_node_without_our_packages_can_tell_so() -> None:
    script = Path(probe.__file__).read_text() + "\nprint(probe('store', '')['missing'])"
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "tasks"


def test_a_node_that_has_all_tells_what_the_driver_compares_with(tmp_path: Path) -> None:
    with shared_store_token(located(tmp_path / "store")) as token:
        found = probe.probe(str(tmp_path / "store"), token)
    assert (found["missing"], found["digest"], found["versions"], found["sees"]) == (
        "",
        code().digest,
        code().versions,
        True,
    )


@pytest.mark.parametrize(
    ("sent", "nodes", "seeing", "line"),
    [
        (False, 1, 1, "Ray cluster of 1 node: the nodes have the same code; all nodes share the store"),
        (True, 0, 0, "Ray cluster of 0 nodes: code was sent to the nodes; no node has joined yet"),
    ],
)
def test_one_line_tells_how_a_cluster_works(sent: bool, nodes: int, seeing: int, line: str) -> None:
    assert str(ClusterInfo(sent=sent, nodes=nodes, seeing=seeing)) == line


def test_a_batch_counts_as_done_by_a_dead_worker_only_if_its_part_is_new(
    job: Job, batch: Batch, store: Path
) -> None:
    place = located(store)
    open_store(store, create=True).close()
    assert published(batch, place, names_of_parts(place)) is None
    before = names_of_parts(place)
    done = run_on_worker(batch, job, str(store), None)
    found = published(batch, place, before)
    assert found is not None
    assert (found.part, found.statuses) == (done.part, done.statuses)
    assert published(batch.part(1), place, before) is None, "other points"
    assert published(batch, place, names_of_parts(place)) is None, "an older run's"


def test_parts_on_their_way_back_are_limited_by_their_bytes(job: Job, store: Path) -> None:
    dispatch = Dispatch([], job, located(store))
    dispatch._points = 650_000
    assert not dispatch._is_full(), "nothing comes back"
    dispatch.carries = True
    assert dispatch._is_full()
    dispatch._points = 640_000
    assert not dispatch._is_full()
