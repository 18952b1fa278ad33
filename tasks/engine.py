"""Engines: the same batches one after another in this process, or on the workers of a Ray cluster."""

import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privcore.errors import PrivsweepError
from tasks.address import named_cluster, why_unreachable
from tasks.batch import Batch
from tasks.guard import Guard
from tasks.work import Done, Job, give_up, published, run_batch

SERIAL = "serial"
RAY = "ray"
AHEAD = 3  # batches in flight for each worker: enough that none waits, few enough to keep memory small
OBJECT_STORE = (
    128 * 1024**2
)  # bytes; batches and summaries are small, and the default is a third of the memory
RESTARTS = 2  # times that a new Ray goes on where one stopped working
PATIENCE = 10.0  # seconds that workers get to publish what they have when a run is interrupted
LONGEST_BASE = 20  # characters: the path of a socket of Ray, far below this folder, must not exceed 107
PREFIX = "psray"

_guard: Guard | None = None  # one a worker process: its child outlives a batch


class EngineError(PrivsweepError):
    """The engine is gone; what it published is in the store, and a new one can go on."""


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


def run(engine: str, batches: Sequence[Batch], job: Job, workers: int) -> Generator[Done]:
    """Yield what became of each batch, as they finish; close the generator to stop early.

    Every batch publishes its own part, so what was yielded is stored. Rows do not depend on the engine.

    Args:
        engine: `serial` or `ray`.
        batches: From `tasks.batch.cut`.
        job: What workers have to know.
        workers: Number of worker processes, >= 1; the serial engine has one.

    Raises:
        EngineError: The cluster that RAY_ADDRESS names is not there, at once; or Ray stopped working, later.
        StoreError: A part cannot be written.
    """
    if engine == SERIAL:
        return run_serially(batches, job)
    _cluster()
    return run_on_ray(batches, job, workers)


def run_serially(batches: Sequence[Batch], job: Job) -> Generator[Done]:
    """Yield what became of each batch, computed here one after another."""
    with Guard(job.limits) as guard:
        for batch in batches:
            yield run_batch(batch, job, guard)


def run_on_ray(batches: Sequence[Batch], job: Job, workers: int) -> Generator[Done]:
    """Yield what became of each batch, computed by Ray tasks of which a few are in flight at a time.

    A batch whose worker dies is tried again, then in halves, until the points that kill their workers are
    alone; these get a row with status `crashed`. A batch that was published before its worker, or all of
    Ray, died is not computed again.
    """
    _set_environment()
    from ray.exceptions import RayError, RayTaskError

    began = time.time()
    waiting = deque(batches)
    running: dict[Any, Batch] = {}
    lost: list[Batch] = []
    for remaining in reversed(range(1 + RESTARTS)):
        folder = _start(workers)
        try:
            for batch in lost:
                if done := published(batch, job, began):
                    yield done
                else:
                    waiting.appendleft(batch)
            yield from _drain(waiting, running, job, began)
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            if not remaining:
                raise EngineError(f"Ray stopped working: {str(error).splitlines()[0]}") from error
            lost = list(running.values())
            running.clear()
        else:
            return
        finally:
            _stop(list(running), folder)


def _drain(waiting: deque[Batch], running: dict[Any, Batch], job: Job, began: float) -> Generator[Done]:
    """Work until both collections are empty; what is in them when this raises is not done, or not known."""
    import ray
    from ray.exceptions import OutOfMemoryError, WorkerCrashedError

    remote = ray.remote(max_retries=0, num_cpus=1)(_run_on_worker)
    crashed: dict[int, Batch] = {}  # have lost a worker; kept here, so that no other batch gets their id
    window = AHEAD * int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
    while waiting or running:
        while waiting and len(running) < window:
            batch = waiting.popleft()
            running[remote.remote(batch, job)] = batch
        (finished, *_), _ = ray.wait(list(running), num_returns=1)
        batch = running[finished]
        try:
            done = ray.get(finished)
        except (WorkerCrashedError, OutOfMemoryError) as error:
            finished_before = published(batch, job, began)  # its worker may have died after its work
            if finished_before is None and id(batch) not in crashed:
                crashed[id(batch)] = batch
                waiting.appendleft(batch)
                del running[finished]
                continue
            if finished_before is None and len(batch) > 1:
                half = len(batch) // 2
                waiting.extendleft((batch.part(half), batch.part(0, half)))
                del running[finished]
                continue
            reason = f"Its worker died twice ({type(error).__name__})."
            done = finished_before or give_up(batch, job, reason)
        del running[finished]
        yield done


def _run_on_worker(batch: Batch, job: Job) -> Done:
    """Run a batch in a Ray worker, with the child that the worker already has, if it has one."""
    global _guard  # noqa: PLW0603  a process-wide child is the point
    if _guard is None or _guard.limits != job.limits:
        _guard = Guard(job.limits)
    return run_batch(batch, job, _guard)


def _set_environment() -> None:
    """Set what Ray reads when it is imported; what the user has set stays."""
    if "ray" in sys.modules:
        return  # too late, and a change now would reach the workers but not this process
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # else workers start in a copy of the folder
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns about GPUs
    os.environ.setdefault("RAY_task_oom_retries", "1")  # else a batch that is too large is tried for ever
    if named_cluster():  # one attempt of 40 s at joining it, not twenty, should it accept and not answer
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
    elif not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        # A token for this run alone: nobody else on the machine can use its cluster, and no file is left.
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _cluster() -> str | None:
    """Return the cluster that RAY_ADDRESS names, None if Ray has to be started here; refuse a dead one."""
    address = named_cluster()
    if address and (reason := why_unreachable(address)):
        raise EngineError(f"Expected a Ray cluster at RAY_ADDRESS={address}, got: {reason}.")
    return address


def _start(workers: int) -> Path | None:
    """Start Ray here and return its folder, or join the cluster that RAY_ADDRESS names."""
    import ray

    address = _cluster()
    folder = None if address else _new_folder()
    ours: dict[str, Any] = {
        "num_cpus": workers,
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE,
        "_temp_dir": str(folder),
    }
    try:
        with _own_sigterm():
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(ours if folder else {}),
            )
    except BaseException as error:
        _stop([], folder)
        if isinstance(error, OSError | RuntimeError | ValueError):
            raise EngineError(f"Ray did not start: {(str(error) or repr(error)).splitlines()[0]}") from error
        raise
    return folder


def _new_folder() -> Path:
    """Return a folder for Ray's sockets and logs; the folders of runs that were killed are removed."""
    base = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir()))
    if len(str(base)) > LONGEST_BASE:
        base = Path("/tmp")
    for old in base.glob(f"{PREFIX}-*-*"):
        if old.stat().st_uid == os.getuid() and not Path("/proc", old.name.split("-")[1]).exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{os.getpid()}-", dir=base))


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM that was there: ray.init puts one that exits in its place."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _stop(running: list[Any], folder: Path | None) -> None:
    """Interrupt what runs, let it publish what it has, and stop what `_start` started."""
    import ray
    from ray.exceptions import RayError

    try:
        for reference in running:
            ray.cancel(reference)
        if running:
            ray.wait(running, num_returns=len(running), timeout=PATIENCE)
    except RayError:
        pass  # it stopped working, and so did they
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
