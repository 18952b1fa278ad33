"""The display of a deployed run in Prefect, except its state: log, progress, and tables of results."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import UTC, datetime
from logging import Logger, LoggerAdapter, LogRecord
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from prefect import artifacts, get_client
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import CancelledRun, CrashedRun, FailedRun
from prefect.runtime import flow_run
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Crashed

from flows.deployments.summary import Computed
from flows.runs.plan import Plan
from flows.runs.progress import Pace, time_left
from flows.spec.sweep import Sweep
from privcore.errors import DomainError, PrivsweepError
from storage import open_store
from tasks.work import Done

Log = Logger | LoggerAdapter[Logger]

EVERY = 30.0  # seconds between two looks at the progress
MOST_ROWS = 25  # of each table of a report that Prefect shows


def check_address(address: str | None) -> None:
    """Raise `DomainError` unless a browser can follow the address of the reports, or it is not given."""
    if address is not None and not re.match(r"https?://[^/]", address):
        raise DomainError(f"Expected reports_url with http:// or https:// and a host, got {address!r}.")


def without_traceback(record: LogRecord) -> bool:
    """Return whether a record of the log of a run is shown, after removing the traceback of a known failure.

    The state has the sentence; Prefect would log the path of the error through its engine, in red, and log it
    again for a final state that is not Completed.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, PrivsweepError):
        record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
    return not isinstance(error, FailedRun | CrashedRun | CancelledRun)


def close_task_runs_of_killed_runs() -> None:
    """Mark the task runs as crashed that are Running although their run was killed and cannot report them."""
    ended, lasting = _in(StateType.CRASHED, StateType.CANCELLED), [StateType.RUNNING, StateType.PENDING]
    running = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=lasting)))
    with suppress(Exception), asking_once(), get_client(sync_client=True) as client:
        for each in client.read_task_runs(flow_run_filter=ended, task_run_filter=running):
            client.set_task_run_state(each.id, Crashed(message="Its run was killed."), force=True)


def other_runs(client: SyncPrefectClient) -> list[FlowRun]:
    """Return the deployed runs, except this one, that are active according to Prefect's server."""
    active = client.read_flow_runs(flow_run_filter=_in(StateType.RUNNING, StateType.CANCELLING))
    return [each for each in active if str(each.id) != flow_run.id]


def _in(*states: StateType) -> FlowRunFilter:
    """Return a filter for deployed runs in these states."""
    return FlowRunFilter(
        tags=FlowRunFilterTags(all_=["privsweep"]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))),
    )


@contextmanager
def asking_once() -> Iterator[None]:
    """Ask Prefect's server only once: retries would wait a minute for a server that is gone."""
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
        yield


class Shown:
    """The log and the artifacts of one run."""

    def __init__(self, sweep: str, logger: Log) -> None:
        """Show nothing yet.

        Args:
            sweep: Name of the sweep.
            logger: The log of the run.
        """
        self._name = sweep
        self._logger = logger
        self._pace = Pace(Plan(total=0))
        self._computed = Computed(0, self._pace.tally)
        self._progress: UUID | None = None
        self._over = threading.Event()
        self._ticks: threading.Thread | None = None

    def watch(self, pace: Pace, done: Done | str | None) -> None:
        """Log the plan, then every batch."""
        if done is None:
            self._begin(pace)
            return
        if isinstance(done, str):
            self._logger.info("%s", done[0].upper() + done[1:])
            return
        if line := self._computed.line(done):
            self._logger.info("%s", line)
        if warning := self._computed.warning(done):
            self._logger.warning("%s", warning)

    def stop(self) -> None:
        """Show the progress no more."""
        self._over.set()
        if self._ticks is not None:
            self._ticks.join()

    def end(self) -> None:
        """Log the remaining batches, and show the table of computed points."""
        self.stop()
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

    def report(self, sweep: Sweep, store: Path, folder: Path, address: str | None) -> None:
        """Write the HTML report of the sweep, and show its text and tables.

        Args:
            sweep: The sweep.
            store: The store.
            folder: Folder of the HTML file.
            address: Where a browser finds this folder, or None.
        """
        from flows.reports.charts import NEEDED, available
        from flows.reports.files import tables, write
        from flows.reports.sweep_report import sweep_report

        try:
            with open_store(store, missing_ok=True) as opened:
                document = sweep_report(sweep, opened)
            whole = f"The whole report is not written. {NEEDED}"
            if available():
                (file,) = write(document, folder, "html", figures=False)["files"]
                whole = _whole_report(Path(file), address)
        except (PrivsweepError, OSError) as error:
            self._logger.warning("No report was written: %s", error)
            return
        self._logger.info("%s", whole)
        above = " ".join([whole, *(f"**{sentence}**" for sentence in document.incomplete)])
        self._show(
            lambda: artifacts.create_markdown_artifact(
                f"{above}\n\n{tables(document, MOST_ROWS)}",
                key=self._key("report"),
                description=f"Report of {self._name}, without charts.",
            )
        )

    def _begin(self, pace: Pace) -> None:
        plan = pace.plan
        self._pace, self._computed = pace, Computed(len(plan.batches), pace.tally)
        self._logger.info("Computing %s of %s points.", plan.new, plan.total)
        if plan.batches:
            self._progress = self._show(
                lambda: artifacts.create_progress_artifact(
                    0.0, key=self._key("progress"), description=self._so_far()
                )
            )
            context = copy_context()  # with the run, to which artifacts of the thread belong
            self._ticks = threading.Thread(
                target=context.run, args=(self._tick,), name="progress", daemon=True
            )
            self._ticks.start()

    def _tick(self) -> None:
        """Show the progress from time to time, also if no batch has finished."""
        while not self._over.wait(EVERY):
            self._show_progress()

    def _show_progress(self) -> None:
        if (progress := self._progress) is not None:
            share = 100 * self._computed.share
            self._show(lambda: artifacts.update_progress_artifact(progress, share, self._so_far()))

    def _so_far(self) -> str:
        """Return the progress in words."""
        tally, new, left = self._pace.tally, self._pace.plan.new, self._pace.seconds_left
        points = f"{tally.points} of {new} points of {self._name}"
        failed = f", {tally.failed} failed" if tally.failed else ""
        rest = f", {time_left(left)}" if left is not None and tally.points < new else ""
        return f"{points}{failed}; {self._computed.batches}{rest}; at {datetime.now(UTC):%H:%M:%S} UTC"

    def _show(self, make: Callable[[], Any]) -> Any:
        """Make or change an artifact; if Prefect's server is gone, the sweep continues without it."""
        try:
            with asking_once():
                return make()
        except Exception as error:  # noqa: BLE001  an artifact is never a reason to stop
            self._progress = None
            self._logger.warning("Prefect does not show all of this run: %s: %s", type(error).__name__, error)
        return None

    def _key(self, what: str) -> str:
        """Return the key of an artifact, which has a version for each run."""
        return f"{re.sub(r'[^a-z0-9]+', '-', self._name.lower()).strip('-')}-{what}"


def _whole_report(file: Path, address: str | None) -> str:
    """Return a sentence with the place of the whole report, or a link if a browser can follow one."""
    if address is not None:
        return f"[The whole report, with charts]({address.rstrip('/')}/{quote(file.name)})"
    return f"The whole report, with charts, is `{file.absolute()}` on {socket.gethostname()}."
