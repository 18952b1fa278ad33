"""The flow that deployments start: a sweep on a schedule, and its display in Prefect.

It computes the same points as `privsweep run`; deploy/README.md describes deployments.

One file, since Prefect loads the deployed flow from it.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from logging import Logger, LoggerAdapter
from math import ceil
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import artifacts, flow, get_client, get_run_logger
from prefect.client.schemas.objects import FlowRunPolicy, State
from prefect.concurrency.sync import concurrency
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Completed, Crashed, Failed

from flows.deployments.summary import Computed
from flows.runs.orchestration import STAGES_ON_SERVER
from flows.runs.plan import MAX_POINTS, Plan
from flows.runs.progress import duration
from flows.runs.run import InterruptedRunError, RunReport, run
from flows.runs.signals import end_with_parent
from flows.runs.unanswered import check_share, too_many_failed
from flows.spec.sweep import Sweep, load
from privcore.answer import FAILURES
from privcore.errors import DomainError, PrivsweepError
from storage import open_store
from storage.errors import StoreError
from tasks.engine import RAY
from tasks.errors import EngineError
from tasks.work import Done

Log = Logger | LoggerAdapter[Logger]

ROOT = "PRIVSWEEP_ROOT"
"""Environment variable of a worker with the folder in which relative paths of its runs begin."""
WITH_FAILURES = "Completed with failures"
LEASE_SECONDS = 120.0  # after which the store is free again if a run was killed


@flow(name="privsweep", flow_run_name="{sweep}", persist_result=False)
def scheduled_sweep(
    sweep: str,
    store: str = "store",
    workers: int | None = None,
    retry: bool = False,
    max_points: float = MAX_POINTS,
    max_failed: float | None = None,
    reports: str | None = None,
    ray_address: str | None = None,
) -> State[None]:
    """Compute the points of a sweep that are not stored yet, with one run per store at a time.

    Args:
        sweep: Name of an embedded sweep, or path of a TOML file.
        store: Folder or address of the store, made if it does not exist.
        workers: Number of worker processes; one per core by default.
        retry: Whether to compute stored failures again.
        max_points: Number of points above which the sweep is refused.
        max_failed: Share of failed points, 0 to 1, above which the run ends as Failed; by default, it does if
            a method has failed points and no answer to any point of a problem.
        reports: Folder for the HTML report; without a folder, no report is written.
        ray_address: The Ray cluster; by default RAY_ADDRESS of the worker, or a new local Ray.

    Returns:
        The final state of the run: Completed, "Completed with failures" if points have no answer, Failed if
        these are too many, Cancelled if it was stopped, Crashed if its worker is gone, else Failed with one
        sentence.

    Raises:
        PrivsweepError: The run failed, and its deployment allows a retry.
    """
    logger = get_run_logger()
    told = _Told(sweep, logger)
    worker_is_gone = end_with_parent() if _of_a_deployment() else lambda: False
    try:
        if _of_a_deployment():
            _enter_root()
        asked = load(sweep)
        check_share(max_failed)
        with _only_run_on(store, logger), open_store(_whole(store), missing_ok=True) as opened:
            report = run(
                asked,
                opened,
                workers=workers,
                engine_name=RAY,
                max_points=max_points,
                retry=retry,
                ray_address=ray_address,
                watch=told.watch,
            )
            told.end()
            reason = too_many_failed(asked, opened, report.now, max_failed)
    except InterruptedRunError as error:
        told.end()
        logger.info("%s", error)
        if worker_is_gone():
            return Crashed(message=f"Its worker is gone. {error}")
        return Cancelled(message=str(error))
    except PrivsweepError as error:
        if _may_repeat(error):
            raise error.with_traceback(None) from None
        return Failed(message=str(error))
    if reports is not None:
        told.report(asked, Path(report.store), Path(reports))
    if reason:
        _no_retries()  # the failures are stored, so the run would end in the same way
    return _ending(report, reason)


def _of_a_deployment() -> bool:
    """Return whether a worker started this process, and not a user at a terminal."""
    context = FlowRunContext.get()
    return context is not None and context.flow_run is not None and bool(context.flow_run.deployment_id)


def _enter_root() -> None:
    """Go to the folder in which relative paths begin: Prefect starts runs in an empty folder, and removes it.

    The empty folder comes first on the path of this process, before our packages.
    """
    root = os.environ.get(ROOT, "")
    if not (Path(root).is_absolute() and Path(root).is_dir()):
        raise DomainError(f"Expected the absolute path of a folder in {ROOT} of the worker, got {root!r}.")
    os.chdir(root)


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
    counts = ", ".join(f"{n} {word}" for word, n in sorted(now.statuses.items()) if word in FAILURES)
    command = f"privsweep sql --store {shlex.quote(report.store)} 'select * from failures'"
    if reason:
        return Failed(message=f"{reason} {done}, {now.failed} failed ({counts}): {command}")
    return Completed(name=WITH_FAILURES, message=f"{done}, {now.failed} failed ({counts}): {command}")


def _may_repeat(error: PrivsweepError) -> bool:
    """Return whether the run should be tried again; if not, disable the retries of Prefect.

    A cluster or a disk can come back; an error in a sweep stays.
    """
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:  # the function was called directly
        return False
    with get_client(sync_client=True) as client:
        now = client.read_flow_run(context.flow_run.id)
    if isinstance(error, EngineError | StoreError) and now.run_count <= (now.empirical_policy.retries or 0):
        return True
    _no_retries()
    return False


def _no_retries() -> None:
    """Disable the retries of this run, which Prefect would use for any state of failure."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run(context.flow_run.id, empirical_policy=FlowRunPolicy(retries=0))


def _whole(store: str) -> str:
    """Return the address of a store, or its absolute path."""
    return store if ":" in store else str(Path(store).absolute())


@contextmanager
def _only_run_on(store: str, logger: Log) -> Iterator[None]:
    """Wait until no other deployed run works on a store: both would compute the same points.

    This only saves work; nothing breaks if Prefect loses track of the active run.
    """
    address = _whole(store)
    name = f"store {re.sub(r'[^A-Za-z0-9._-]+', ' ', address).strip()}"
    with get_client(sync_client=True) as client:
        with suppress(ObjectAlreadyExists):  # two runs made it at once
            client.upsert_global_concurrency_limit_by_name(name, 1)
        if client.read_global_concurrency_limit_by_name(name).active_slots:
            logger.info("Waiting until another run on the store %s has ended.", address)
    slot = ExitStack()
    slot.enter_context(concurrency(name, lease_duration=LEASE_SECONDS, raise_on_lease_renewal_failure=False))
    try:
        yield
    finally:
        try:
            with _asking_once():
                slot.close()
        except Exception as error:  # noqa: BLE001  an error of Prefect; the lease expires
            logger.debug("The turn on the store was not returned: %s", error)


@contextmanager
def _asking_once() -> Iterator[None]:
    """Ask Prefect's server only once: retries would wait a minute for a server that is gone."""
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
        yield


class _Told:
    """The display of a run in Prefect, except its state: log, progress, table, link to the report."""

    def __init__(self, sweep: str, logger: Log) -> None:
        self._name = sweep
        self._logger = logger
        self._computed = Computed(0)
        self._progress: UUID | None = None

    def watch(self, plan: Plan, done: Done | str | None) -> None:
        """Log the plan, then every batch."""
        computed = self._computed
        if done is None:
            self._begin(plan)
            return
        if isinstance(done, str):
            self._logger.info("%s", done[0].upper() + done[1:])
            return
        computed.add(done)
        if line := computed.line():
            self._logger.info("%s", line)
        if warning := computed.warning(done):
            self._logger.warning("%s", warning)
        if computed.finished % ceil(computed.expected / STAGES_ON_SERVER) == 0:
            self._show_progress()

    def end(self) -> None:
        """Log the remaining batches, and show the table of computed points."""
        if line := self._computed.rest():
            self._logger.info("%s", line)
        if warning := self._computed.warning_of_rest():
            self._logger.warning("%s", warning)
        if table := self._computed.table():
            self._show_progress()
            self._show(
                lambda: artifacts.create_table_artifact(
                    table,
                    key=self._key("computed"),
                    description=f"Points computed by this run of {self._name}.",
                )
            )

    def report(self, sweep: Sweep, store: Path, folder: Path) -> None:
        """Write the HTML report of the sweep, and show a link to it."""
        from flows.reports.charts import NEEDED, available
        from flows.reports.files import write
        from flows.reports.sweep_report import sweep_report

        if not available():
            self._logger.info("No report was written. %s", NEEDED)
            return
        try:
            with open_store(store, missing_ok=True) as opened:
                document = sweep_report(sweep, opened)
            (file,) = write(document, folder, "html", figures=False)["files"]
        except (PrivsweepError, OSError) as error:
            self._logger.warning("No report was written: %s", error)
            return
        link = Path(file).absolute().as_uri()
        self._logger.info("The report is %s", link)
        self._show(
            lambda: artifacts.create_link_artifact(
                link,
                link_text=Path(file).name,
                key=self._key("report"),
                description=f"Report of {self._name}.",
            )
        )

    def _begin(self, plan: Plan) -> None:
        self._computed = Computed(len(plan.batches))
        self._logger.info("Computing %s of %s points.", plan.new, plan.total)
        if plan.batches:
            self._progress = self._show(
                lambda: artifacts.create_progress_artifact(
                    0.0, key=self._key("progress"), description=f"Finished batches of {self._name}."
                )
            )

    def _show_progress(self) -> None:
        progress, computed = self._progress, self._computed
        if progress is not None:
            share = min(1.0, computed.finished / computed.expected)
            self._show(lambda: artifacts.update_progress_artifact(progress, 100 * share))

    def _show(self, make: Callable[[], Any]) -> Any:
        """Make or change an artifact; if Prefect's server is gone, the sweep continues without it."""
        try:
            with _asking_once():
                return make()
        except Exception as error:  # noqa: BLE001  an artifact is never a reason to stop
            self._progress = None
            self._logger.warning("Prefect does not show all of this run: %s: %s", type(error).__name__, error)
        return None

    def _key(self, what: str) -> str:
        """Return the key of an artifact, which has a version for each run."""
        return f"{re.sub(r'[^a-z0-9]+', '-', Path(self._name).stem.lower()).strip('-')}-{what}"
