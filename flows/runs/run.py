"""The run of a sweep: a Prefect flow around an engine; the store determines the remaining points."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from flows.runs import orchestration
from flows.runs.plan import MAX_POINTS, Plan, TooLargeError, make_plan
from flows.runs.progress import Pace, beating
from flows.runs.signals import signals_interrupt
from flows.runs.status import Coverage, after, coverage, is_broken, record
from flows.spec.sweep import Sweep
from flows.spec.typed import TYPED
from privcore.errors import ExitCode, PrivsweepError
from tasks.engine import AUTOMATIC, RAY, SERIAL, Engine
from tasks.errors import EngineError, StoppedError
from tasks.work import Done, Job

if TYPE_CHECKING:
    from storage import Store

Watch = Callable[[Pace, Done | str | None], None]
"""Called with the pace alone, with words on the start of the engine, and with every finished batch."""


class InterruptedRunError(PrivsweepError):
    """The run was interrupted; the sentence says how many points are stored and how to resume."""

    exit_code = ExitCode.INTERRUPTED


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Outcome of a run.

    Attributes:
        now: Coverage of the sweep at the end.
        before: Number of points that were stored before.
        computed: Number of points computed by this run.
        seconds: Wall time, in seconds.
        store: Address of the store.
    """

    now: Coverage
    before: int
    computed: int
    seconds: float
    store: str


def run(
    sweep: Sweep,
    store: "Store",
    *,
    engine: Engine = AUTOMATIC,
    max_points: float = MAX_POINTS,
    retry: bool = False,
    watch: Watch = lambda _pace, _done: None,
) -> RunReport:
    """Compute the points of a sweep that are not stored yet; if all are stored, start nothing.

    Args:
        sweep: The sweep.
        store: Opened with `missing_ok`; it is created if it does not exist.
        engine: Computes the points.
        max_points: Number of points above which the sweep is refused.
        retry: Whether to compute stored failures again.
        watch: Called with the progress.

    Returns:
        The report; failed points are counted in it and do not raise.

    Raises:
        TooLargeError: The sweep has too many points.
        InterruptedRunError: SIGINT or SIGTERM arrived.
        PrivsweepError: The sweep contradicts itself, the store cannot be used, or an engine does not work.
    """
    began, started = time.monotonic(), datetime.now(UTC)
    pace = Pace(Plan(total=0))

    def counted(outcomes: Iterator[Done | str | None]) -> Iterator[Done | None]:
        for done in outcomes:
            if isinstance(done, str):
                watch(pace, done)
                continue
            if done is not None:
                pace.add(done)
                watch(pace, done)
            yield done
        if after(pace.plan, pace.tally, sweep, store)[0].missing:  # before Prefect records success
            raise StoppedError("The run ended, but the store lacks some of its points")

    def so_far() -> str:
        now, _ = after(pace.plan, pace.tally, sweep, store)
        return f"{now.stored} of {now.total} points are stored; the same command resumes."

    with signals_interrupt():
        try:
            plan = make_plan(
                sweep,
                store,
                workers=engine.workers or engine.processors,
                max_points=max_points,
                retry=retry,
            )
            if plan.refused:
                raise TooLargeError(plan.refused)
            chosen, reason = engine.chosen(plan.cpu_seconds)
            if chosen.name == SERIAL:
                plan = replace(plan, workers=1)
            pace = Pace(plan)
            watch(pace, None)
            store.create()
            if plan.batches:
                if not is_broken(sweep, store):  # else its manifest is the record of lost points
                    before = coverage(sweep, plan.ledger)  # so that `status` lists the sweep meanwhile
                    record(sweep, before, plan.ledger.parts, store, started)
                job = Job(sweep=sweep.name, limits=sweep.limits)
                watch(pace, reason or _start_of(chosen))
                outcomes = chosen.outcomes(plan.batches, job, store.place)
                with (
                    closing(outcomes),
                    _no_output_of_others(),
                    beating(store.place, sweep, pace, started=started),
                ):
                    if chosen.name == RAY or orchestration.in_a_flow_run():
                        orchestration.under_prefect(
                            _shown_name(sweep), pace, counted(outcomes), store.place.root
                        )
                    else:
                        deque(counted(outcomes), maxlen=0)
            now, parts = after(pace.plan, pace.tally, sweep, store)
            record(sweep, now, parts, store, started)
        except KeyboardInterrupt:
            if not pace.plan.total:
                raise InterruptedRunError("Stopped before anything was computed.") from None
            raise InterruptedRunError(f"Stopped: {so_far()}") from None
        except StoppedError as error:
            raise EngineError(f"{error}: {so_far()}") from error
    return RunReport(
        now=now,
        before=sum(pace.plan.stored.values()),
        computed=pace.tally.points,
        seconds=time.monotonic() - began,
        store=store.place.address,
    )


def _shown_name(sweep: Sweep) -> str:
    """Return the name of a sweep in Prefect: a sweep typed on the command line has no file, but a problem."""
    return sweep.title if sweep.title.endswith(TYPED) else sweep.name


def _start_of(chosen: Engine) -> str:
    """Return words on the start of an engine."""
    if chosen.name == SERIAL:
        return "in this process"
    return "starting Ray" if orchestration.in_a_flow_run() else "starting Prefect and Ray"


@contextmanager
def _no_output_of_others() -> Iterator[None]:
    """Keep standard output for our own results: a thread of Ray prints there when a worker dies."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        yield
