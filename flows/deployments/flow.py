"""The flow that deployments start: a sweep on a schedule, and its display in Prefect.

It computes the same points as `privsweep run`; deploy/README.md describes deployments.
"""

import logging
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from prefect import flow, get_client, get_run_logger
from prefect.client.schemas.objects import FlowRun, FlowRunPolicy, State
from prefect.concurrency.sync import concurrency
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, ObjectAlreadyExists
from prefect.states import Cancelled, Completed, Crashed, Failed
from pydantic import WithJsonSchema

from flows.deployments.shown import (
    Log,
    Shown,
    asking_once,
    check_address,
    close_task_runs_of_killed_runs,
    other_runs,
    without_traceback,
)
from flows.runs.method_runs import WITH_FAILURES
from flows.runs.orchestration import run_name
from flows.runs.plan import MAX_POINTS
from flows.runs.progress import duration
from flows.runs.run import InterruptedRunError, RunReport, run
from flows.runs.signals import end_with_parent
from flows.runs.status import Coverage, check_share, too_many_failed
from flows.spec.sweep import display_name, embedded_names, load
from privcore.errors import DomainError, PrivsweepError
from storage import open_store
from storage.errors import StoreError
from tasks.engine import RAY, Engine
from tasks.errors import EngineError
from tasks.tally import failures

ROOT = "PRIVSWEEP_ROOT"
"""Environment variable of a worker with the folder in which relative paths of its runs begin."""
STORE = "store"
LEASE_SECONDS = 120.0  # after which the store is free again if a run was killed


def _active() -> FlowRun | None:
    """Return the active run as it was when it began, or None if the function was called directly."""
    context = FlowRunContext.get()
    return context.flow_run if context else None


def _run_name() -> str:
    """Return the name of the active run: its sweep, and when it was to begin."""
    context = FlowRunContext.get()
    active = _active()
    if context is None or active is None:
        raise RuntimeError("Expected an active flow run.")
    began = active.expected_start_time or datetime.now(UTC)
    sweep = (context.parameters or {})["sweep"]
    return run_name(display_name(sweep, Path(os.environ.get(ROOT, "."))), began)


AnySweep = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"title": "Embedded sweep", "type": "string", "enum": embedded_names()},
                {"title": "TOML, or the path of a file", "type": "string"},
            ]
        }
    ),
]
"""The reference to a sweep, which Prefect's page lets the user choose or write."""


@flow(name="privsweep", flow_run_name=_run_name, persist_result=False)
def scheduled_sweep(  # noqa: PLR0913, PLR0917  the parameters of a deployment
    sweep: AnySweep,
    store: str = STORE,
    workers: int | None = None,
    retry: bool = False,
    max_points: float = MAX_POINTS,
    max_failed: float | None = None,
    reports: str | None = None,
    reports_url: str | None = None,
    ray_address: str | None = None,
) -> State[None]:
    """Compute the points of a sweep that are not stored yet, with one run per store at a time.

    Args:
        sweep: Name of an embedded sweep, path of a TOML file, or TOML of several lines.
        store: Folder or address of the store, made if it does not exist.
        workers: Number of worker processes; one per core by default.
        retry: Whether to compute stored failures again.
        max_points: Number of points above which the sweep is refused.
        max_failed: Share of failed points, 0 to 1, above which the run ends as Failed; by default, it does if
            a method has failed points and no answer to any point of a problem.
        reports: Folder for the HTML report; without a folder, no report is written or shown.
        reports_url: Address at which a browser finds this folder, for a link to the report.
        ray_address: The Ray cluster; by default RAY_ADDRESS of the worker, or a new local Ray.

    Returns:
        The final state of the run: Completed, "Completed with failures" if points have no answer, Failed if
        these are too many, Cancelled if it was stopped, Crashed if its worker is gone, else Failed with one
        sentence.

    Raises:
        PrivsweepError: The run failed, and its deployment allows a retry.
        Abort: The run was cancelled through Prefect, whose worker sets its state.
    """
    logger = get_run_logger()
    logging.getLogger("prefect.flow_runs").addFilter(without_traceback)
    shown = Shown(display_name(sweep), logger)
    worker_is_gone = end_with_parent() if _of_a_deployment() else lambda: False
    try:
        if _of_a_deployment():
            _enter_root()
            close_task_runs_of_killed_runs()
        asked = load(sweep)
        check_share(max_failed)
        check_address(reports_url)
        with _only_run_on(store, logger), open_store(_whole(store), missing_ok=True) as opened:
            report = run(
                asked,
                opened,
                engine=Engine(name=RAY, workers=workers, address=ray_address),
                max_points=max_points,
                retry=retry,
                watch=shown.watch,
            )
            shown.end()
    except InterruptedRunError as error:
        shown.end()
        logger.info("%s", error)
        _add_to_title(str(error).partition(";")[0])
        if worker_is_gone():
            return Crashed(message=f"Its worker is gone. {error}")
        if _is_cancelling():
            raise Abort("Cancelled.") from None  # its worker sets the state: two states would be two messages
        return Cancelled(message=str(error))
    except PrivsweepError as error:
        if _may_repeat(error):
            raise error.with_traceback(None) from None
        return Failed(message=str(error))
    finally:
        shown.stop()
    reason = too_many_failed(report.now, max_failed)
    if reports is not None:
        shown.report(asked, Path(report.store), Path(reports), reports_url)
    if reason:
        _no_retries()  # the failures are stored, so the run would end in the same way
    _add_to_title(_counts(report.now))
    return _ending(report, reason)


def _of_a_deployment() -> bool:
    """Return whether a worker started this process, and not a user at a terminal."""
    return bool((active := _active()) and active.deployment_id)


def _enter_root() -> None:
    """Go to the folder in which relative paths begin: Prefect starts runs in an empty folder, and removes it.

    The empty folder comes first on the path of this process, before our packages.
    """
    root = os.environ.get(ROOT, "")
    if not (Path(root).is_absolute() and Path(root).is_dir()):
        raise DomainError(f"Expected the absolute path of a folder in {ROOT} of the worker, got {root!r}.")
    os.chdir(root)


def _is_cancelling() -> bool:
    """Return whether the run was cancelled through Prefect, and not by a signal alone."""
    if active := _active():
        with suppress(Exception), asking_once(), get_client(sync_client=True) as client:
            state = client.read_flow_run(active.id).state
            return state is not None and state.is_cancelling()
    return False


def _counts(now: Coverage) -> str:
    """Return the outcome of a sweep in a few words."""
    return f"{now.total} points, {f'{now.failed} failed' if now.failed else 'none failed'}"


def _add_to_title(outcome: str) -> None:
    """Add the outcome to the name of the run, which Prefect's pages do not cut, unlike messages of states."""
    if active := _active():
        with suppress(Exception), asking_once(), get_client(sync_client=True) as client:
            client.set_flow_run_name(active.id, f"{_run_name()}: {outcome}")


def _ending(report: RunReport, reason: str = "") -> State[None]:
    """Return the final state of a run, with counts and the command that lists failures.

    Args:
        report: The run.
        reason: Why too many points failed, or "".
    """
    now = report.now
    done = f"{now.total} points, {report.computed} computed in {duration(report.seconds)}"
    if not now.failed:
        return Completed(message=f"{done}.")
    command = f"privsweep sql --store {shlex.quote(report.store)} 'select * from failures'"
    done = f"{done}, {now.failed} failed ({failures(now.statuses)}): {command}"
    if reason:
        return Failed(message=f"{reason} {done}")
    return Completed(name=WITH_FAILURES, message=done)


def _may_repeat(error: PrivsweepError) -> bool:
    """Return whether the run should be tried again; if not, disable the retries of Prefect.

    A cluster or a disk can come back; an error in a sweep stays.
    """
    if not (active := _active()):
        return False
    with get_client(sync_client=True) as client:
        now = client.read_flow_run(active.id)
    if isinstance(error, EngineError | StoreError) and now.run_count <= (now.empirical_policy.retries or 0):
        return True
    _no_retries()
    return False


def _no_retries() -> None:
    """Disable the retries of this run, which Prefect would use for any state of failure."""
    if active := _active():
        with get_client(sync_client=True) as client:
            client.update_flow_run(active.id, empirical_policy=FlowRunPolicy(retries=0))


def _address(store: str) -> str:
    """Return the address of a store, the same for all its spellings."""
    return store.rstrip("/") if ":" in store else str(Path(store).resolve())


def _whole(store: str) -> str:
    """Return the address of a store, or its absolute path."""
    return store if ":" in store else str(Path(store).absolute())


@contextmanager
def _only_run_on(store: str, logger: Log) -> Iterator[None]:
    """Wait until no other deployed run works on a store: both would compute the same points.

    This only saves work; nothing breaks if Prefect loses track of the active run.
    """
    address = _address(store)
    name = f"store {re.sub(r'[^A-Za-z0-9._-]+', ' ', address).strip()}"
    with get_client(sync_client=True) as client:
        with suppress(ObjectAlreadyExists):  # two runs made it at once
            client.upsert_global_concurrency_limit_by_name(name, 1)
        if client.read_global_concurrency_limit_by_name(name).active_slots:
            if any(_address(each.parameters.get("store", STORE)) == address for each in other_runs(client)):
                logger.info("Waiting until another run on the store %s has ended.", address)
            else:  # Prefect names neither its lease nor its process, so the turn cannot be taken over
                end = datetime.now(UTC) + timedelta(seconds=LEASE_SECONDS)
                text = "Waiting until the turn of a killed run on the store %s ends, by %s UTC."
                logger.info(text, address, f"{end:%H:%M:%S}")
    slot = ExitStack()
    slot.enter_context(concurrency(name, lease_duration=LEASE_SECONDS, raise_on_lease_renewal_failure=False))
    try:
        yield
    finally:
        try:
            with asking_once():
                slot.close()
        except Exception as error:  # noqa: BLE001  an error of Prefect; the lease expires
            logger.debug("The turn on the store was not returned: %s", error)
