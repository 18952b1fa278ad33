"""Full, failing or forbidding disks: one sentence that names a file, and the next run continues."""

import ctypes
import errno
import os
import resource
from pathlib import Path

import pytest

from flows.cli.app import run as command_line
from storage import StoreError, open_store
from storage.parts import parts
from storage.place.located import located
from tests.faults.children import run, value_of
from tests.faults.sweeps import POINTS, content, fault_points, ids, sweep, sweep_on
from tests.faults.tally import Tally
from tests.storage.made_up import put, read_rows, rows
from tests.suites import some

pytestmark = pytest.mark.sampled(2)


def rows_in(root: Path) -> int:
    return sum(len(read_rows(path)) for path in parts(located(root))) if root.exists() else 0


def refused_at_every_operation(faults: Tally, tmp_path: Path, code: int, step: int) -> None:
    """Run the sweep on a disk that refuses an operation, for every `step`-th operation; then run it again."""
    points = value_of(fault_points, tmp_path / "undisturbed" / "store")
    answers = content(tmp_path / "undisturbed" / "store")
    hurt = 0
    on_disk = [(k, point) for k, point in enumerate(points) if not point.startswith("compute")]
    chosen = some([(k, point) for k, point in on_disk if k % step == 0], 4)
    for k, point in chosen:
        root = tmp_path / f"{k}" / "store"
        root.parent.mkdir()
        with faults.trial():
            ending = run(sweep_on, "fail", k, code, root)
            if ending.error is not None:
                hurt += 1
                sentence = str(ending.error)
                assert isinstance(ending.error, StoreError), f"{point}: {ending.error!r}"
                assert os.strerror(code) in sentence, point
                assert str(root.parent) in sentence, f"{point}: {sentence}"
                assert "\n" not in sentence
            if root.exists():
                visible = [
                    path for path in root.rglob("*") if path.is_file() and not path.name.endswith(".tmp")
                ]
                assert all(path.stat().st_size > 0 for path in visible)
                if (root / "store.json").exists():
                    with open_store(root) as store:
                        assert store.verify() == [], point
            before = rows_in(root)
            with faults.recovery():
                computed = value_of(sweep, root)
            assert before + computed == POINTS == rows_in(root), point
            if k % 24 == 0:
                faults.compare(root, ids())
                assert content(root) == answers
    assert hurt > len(points) / 3 / step or len(chosen) == 4, "most operations matter"


every_operation_or_few = pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.soak)])


@pytest.mark.thorough
@every_operation_or_few
def test_a_disk_that_is_full_from_any_operation_on_is_one_sentence_and_the_next_run_goes_on(
    faults: Tally, tmp_path: Path, step: int
) -> None:
    """T7: no room at the k-th operation that needs room, for every k."""
    refused_at_every_operation(faults, tmp_path, errno.ENOSPC, step)


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS], ids=["io-error", "read-only"])
@every_operation_or_few
def test_a_disk_that_fails_or_turns_read_only_at_any_operation_is_one_sentence(
    faults: Tally, tmp_path: Path, code: int, step: int
) -> None:
    """T8: an I/O error at the k-th operation only, or no permission from the k-th operation on."""
    refused_at_every_operation(faults, tmp_path, code, step)


def sweep_within(limit: int, root: Path) -> int:
    """Run the sweep with a size limit for files, so that the operating system raises the error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return sweep(root)


@pytest.mark.parametrize("limit", [0, 40, 400, 4000])
def test_a_file_that_the_system_cuts_short_is_never_seen(faults: Tally, root: Path, limit: int) -> None:
    """T7: the system limits files to a few bytes, writes as much as fits and then refuses."""
    with faults.trial():
        ending = run(sweep_within, limit, root)
        assert isinstance(ending.error, StoreError)
        assert os.strerror(errno.EFBIG) in str(ending.error)
        assert str(root.parent) in str(ending.error)
        assert rows_in(root) == 0
        assert (
            not root.exists()
            or [p for p in root.rglob("*") if p.is_file() and p.stat().st_size == limit] == []
        )
        with faults.recovery():
            assert value_of(sweep, root) == POINTS
        faults.compare(root, ids())


def ask_within(limit: int, root: Path) -> int:
    """Query a store whose snapshot must be built, without room for it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with open_store(root) as store:
        return int(store.sql("from results").num_rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.9])
def test_a_store_on_a_full_disk_is_read_in_memory_and_stays_as_it_is(
    faults: Tally, root: Path, share: float
) -> None:
    """T7: no room for the snapshot of a reader, neither in the store nor for temporary files."""
    put(root, rows(10))
    faults.compare(root, {row.point.id for row in rows(10)})
    (whole,) = (root / "cache").glob("*.duckdb")
    limit = int(share * whole.stat().st_size)
    whole.unlink()
    with faults.trial():
        ending = run(ask_within, limit, root)
        assert ending.value == 10, ending.error
        with faults.recovery():
            faults.compare(root, {row.point.id for row in rows(10)})
        assert sorted(path.suffix for path in (root / "cache").iterdir()) == [".duckdb"]


# ------------------------------------------------------------------------------ permissions


def without_privileges(arguments: list[str], log: Path) -> int:
    """Run a command as a user without root permissions, with its output in a file."""
    if os.geteuid() == 0:
        header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(header, nothing) == 0
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        return command_line(arguments)


@pytest.mark.parametrize("forbidden", ["store", "data", "problem", "sweeps"])
def test_a_folder_that_may_not_be_written_is_one_sentence_that_names_it(
    faults: Tally, root: Path, tmp_path: Path, forbidden: str
) -> None:
    """T8: a folder of the store without write permission, which readers do not need."""
    spec = tmp_path / "spec.toml"
    spec.write_text(
        """
        name = "forbidden"
        [[grid]]
        problem = "unamplified-epsilon"
        methods = ["unamplified.exact"]
        product = {sigma = [1, 2], delta = 1e-5}
        """
    )
    made = put(root, rows(10))
    folders = {"store": root, "data": root / "data", "problem": made.parent, "sweeps": root / "sweeps"}
    folders["sweeps"].mkdir(exist_ok=True)
    log = tmp_path / "log"
    before = {p: p.stat().st_mtime_ns for p in (root / "data").rglob("*")}
    folders[forbidden].chmod(0o555)
    try:
        with faults.trial():
            writes = ["run", str(spec), "--store", str(root), "--engine", "serial"]
            if forbidden in ("sweeps", "problem"):
                code = value_of(without_privileges, writes, log)
                text = log.read_text()
                assert code == 2, text
                assert "Permission denied" in text
                assert str(folders[forbidden]) in text
                assert "Traceback" not in text
            query = ["sql", "select count(*) as n from results", "--store", str(root), "--json"]
            assert value_of(without_privileges, query, log) == 0, log.read_text()
            assert '"n": 10' in log.read_text()
        assert {p: p.stat().st_mtime_ns for p in (root / "data").rglob("*")} == before
    finally:
        folders[forbidden].chmod(0o755)


def test_a_part_that_may_not_be_read_is_named(faults: Tally, root: Path, tmp_path: Path) -> None:
    """T8: a part without read permission."""
    part, log = put(root, rows(10)), tmp_path / "log"
    part.chmod(0)
    with faults.trial():
        assert value_of(without_privileges, ["sql", "from results", "--store", str(root)], log) == 2
        assert log.read_text() == f"privsweep: Cannot read {part}: Permission denied.\n"
    part.chmod(0o644)
    faults.compare(root, {row.point.id for row in rows(10)})
