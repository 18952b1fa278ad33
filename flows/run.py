"""Running a sweep: a Prefect flow around an engine, while the store decides what is left to do.

The store is imported inside functions, here and in `flows.status`: threads of Prefect hold on to the names of
this module until the very end of the process, where DuckDB would complain of leaks.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import ceil
from pathlib import Path

from flows.plan import MAX_POINTS, Plan, TooLargeError, make_plan
from flows.server import SchedulerError, own_server
from flows.status import Coverage, coverage, is_broken, record
from flows.sweep import Sweep
from privcore.errors import PrivsweepError
from tasks import engine
from tasks.work import Done, Job

STAGES = 20  # Prefect task runs of a sweep, at most: its server records some twenty a second
DRAIN_SECONDS = 10.0  # for Prefect to tell its server the rest, before we stop that

Watch = Callable[[Plan, Done | None], None]
"""Called with the plan alone before the start, then with every batch that is done."""


class InterruptedRunError(PrivsweepError):
    """Somebody stopped the run; the sentence says what is stored and how to go on."""

    exit_code = 130


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run did.

    Attributes:
        now: How much of the sweep is stored at the end.
        before: Number of points that needed nothing.
        computed: Number of points computed by this run.
        seconds: Wall time, in seconds.
        store: Folder of the store.
    """

    now: Coverage
    before: int
    computed: int
    seconds: float
    store: Path


def run(
    sweep: Sweep,
    store: Path,
    *,
    workers: int | None = None,
    engine_name: str = engine.RAY,
    max_points: float = MAX_POINTS,
    retry: bool = False,
    watch: Watch = lambda _plan, _done: None,
) -> Report:
    """Compute the points of a sweep that are not stored yet; where there are none, nothing is started.

    Args:
        sweep: What is asked.
        store: Folder or address of the store; it is made where it does not exist.
        workers: Number of worker processes, or None for one a core.
        engine_name: `ray` or `serial`.
        max_points: Number of points above which the sweep is refused.
        retry: Whether to compute stored failures again.
        watch: Told about progress.

    Returns:
        What was done; points that failed are counted in it, they do not raise.

    Raises:
        TooLargeError: The sweep has too many points.
        InterruptedRunError: SIGINT or SIGTERM arrived.
        PrivsweepError: The sweep contradicts itself, the store cannot be used, or an engine does not work.
    """
    from storage.catalog import open_store
    from storage.layout import check_path
    from storage.located import address_of, located, refresh

    began, started = time.monotonic(), datetime.now(UTC)
    store = located(store).absolute()
    refresh(store)
    check_path(store)
    computed = 0

    def counted(outcomes: Iterator[Done]) -> Iterator[Done]:
        nonlocal computed
        for done in outcomes:
            computed += done.points
            watch(plan, done)
            yield done

    plan = Plan(total=0)
    with _sigterm_interrupts():
        try:
            plan = make_plan(
                sweep, store, workers=workers or engine.cores(), max_points=max_points, retry=retry
            )
            if plan.refused:
                raise TooLargeError(plan.refused)
            watch(plan, None)
            open_store(store, create=True).close()
            if plan.batches:
                if not is_broken(sweep, store):  # else its manifest is what tells that points were lost
                    record(sweep, plan.ids, store, started)  # so that `status` knows the sweep meanwhile
                job = Job(store=address_of(store), sweep=sweep.name, limits=sweep.limits)
                outcomes = engine.run(engine_name, plan.batches, job, workers or engine.cores())
                with closing(outcomes), _no_output_of_others():
                    _under_prefect(sweep.name, len(plan.batches), counted(outcomes), store)
            now = record(sweep, plan.ids, store, started)
        except KeyboardInterrupt:
            now = coverage(sweep, plan.ids, store)
            raise InterruptedRunError(
                f"Stopped: {now.stored} of {now.total} points are stored; the same command goes on."
            ) from None
    return Report(
        now=now,
        before=sum(plan.stored.values()),
        computed=computed,
        seconds=time.monotonic() - began,
        store=store,
    )


def _under_prefect(name: str, batches: int, outcomes: Iterator[Done], store: Path) -> None:
    """Let a Prefect flow consume the outcomes, in a few task runs that show how far it is.

    Prefect watches, it does not decide: errors and interruptions are kept from it, so that they reach the
    caller at once and unchanged, and what it leaves undone because its server died is done without it.
    """
    begun = False
    ended_by: list[BaseException] = []
    stages = min(STAGES, batches)
    with _prefect(store):
        from prefect import flow, task
        from prefect.client.schemas.objects import State
        from prefect.states import Cancelled, Completed, Failed

        @task(name="batches", task_run_name="stage {number} of {stages}", persist_result=False)
        def stage(number: int, stages: int) -> State[int]:
            share = outcomes if number == stages else islice(outcomes, ceil(batches / stages))
            try:
                return Completed(message=f"{sum(done.points for done in share)} points")
            except BaseException as error:  # noqa: BLE001  raised again below
                ended_by.append(error)
                return Failed(message=f"{type(error).__name__}: {error}")

        @flow(name="privsweep", flow_run_name=name, validate_parameters=False, persist_result=False)
        def sweep() -> State[int]:
            nonlocal begun
            begun = True
            with _sigterm_interrupts():  # here Prefect has a handler of its own
                for number in range(1, stages + 1):
                    if not ended_by:
                        stage(number, stages, return_state=True)
            if not ended_by:
                return Completed()
            interrupted = isinstance(ended_by[0], KeyboardInterrupt)
            return Cancelled(message="Interrupted") if interrupted else Failed(message=str(ended_by[0]))

        try:
            sweep(return_state=True)
        except Exception as error:
            if not begun:
                raise SchedulerError(f"Prefect did not start: {type(error).__name__}: {error}.") from error
    if ended_by:
        raise ended_by.pop()  # and let go of its traceback, see above
    for _ in outcomes:
        pass


@contextmanager
def _prefect(store: Path) -> Iterator[None]:
    """Have Prefect report to a server of our own, unless the user has named one.

    Its state lies in a hidden folder beside the store, so that no profile of the user's is read or changed.
    """
    if {"PREFECT_API_URL", "PREFECT_PROFILE"} & os.environ.keys():
        yield
        return
    beside = store.parent if os.access(store.parent, os.W_OK) else store
    home = Path(os.environ.setdefault("PREFECT_HOME", str(beside / ".prefect")))
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    with own_server(home) as address:
        from prefect import settings
        from prefect.events.worker import EventsWorker

        ours = {
            settings.PREFECT_API_URL: address,
            settings.PREFECT_CLIENT_MAX_RETRIES: 0,  # a server of ours that is gone does not come back
            settings.PREFECT_LOGGING_LEVEL: "CRITICAL",  # what goes wrong is told in one sentence of ours
        }
        with settings.temporary_settings(ours):
            try:
                yield
            finally:
                EventsWorker.drain_all(timeout=DRAIN_SECONDS, at_exit=False)


@contextmanager
def _no_output_of_others() -> Iterator[None]:
    """Keep standard output for our own results: a thread of Ray prints there when a worker dies."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, where signals can be handled at all."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    from flows.cli import run as command_line

    sys.exit(command_line(["run", *sys.argv[1:]]))
