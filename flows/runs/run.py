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
from flows.runs.progress import beating
from flows.runs.signals import signals_interrupt
from flows.runs.status import Coverage, Reported, after, coverage, is_broken, record
from flows.spec.sweep import Sweep
from flows.spec.typed import TYPED
from privcore.errors import ExitCode, PrivsweepError
from tasks import engine
from tasks.errors import EngineError, StoppedError
from tasks.work import Done, Job

if TYPE_CHECKING:
    from storage import Store

Watch = Callable[[Plan, Done | str | None], None]
"""Called with the plan alone, with words on the start of the engine, and with every finished batch."""


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
    workers: int | None = None,
    engine_name: str = engine.AUTO,
    max_points: float = MAX_POINTS,
    retry: bool = False,
    watch: Watch = lambda _plan, _done: None,
    ray_address: str | None = None,
) -> RunReport:
    """Compute the points of a sweep that are not stored yet; if all are stored, start nothing.

    Args:
        sweep: The sweep.
        store: Opened with `missing_ok`; it is created if it does not exist.
        workers: Number of worker processes, or None for one per core; on a named cluster, the number of
            batches in flight, or None for enough to keep the whole cluster busy.
        engine_name: `auto`, `ray` or `serial`; only `ray` runs under Prefect.
        max_points: Number of points above which the sweep is refused.
        retry: Whether to compute stored failures again.
        watch: Called with the progress.
        ray_address: A Ray cluster to compute on; None for the value of RAY_ADDRESS.

    Returns:
        The report; failed points are counted in it and do not raise.

    Raises:
        TooLargeError: The sweep has too many points.
        InterruptedRunError: SIGINT or SIGTERM arrived.
        PrivsweepError: The sweep contradicts itself, the store cannot be used, or an engine does not work.
    """
    began, started = time.monotonic(), datetime.now(UTC)
    reported = Reported()

    def counted(outcomes: Iterator[Done | str | None]) -> Iterator[Done | None]:
        for done in outcomes:
            if isinstance(done, str):
                watch(plan, done)
                continue
            if done is not None:
                reported.add(done)
                tell(done)
                watch(plan, done)
            yield done
        if after(plan, reported, sweep, store)[0].missing:  # before Prefect records success
            raise StoppedError("The run ended, but the store lacks some of its points")

    plan = Plan(total=0)
    with signals_interrupt():
        try:
            plan = make_plan(
                sweep,
                store,
                workers=workers or (lambda: engine.processors(engine_name, ray_address)),
                max_points=max_points,
                retry=retry,
            )
            if plan.refused:
                raise TooLargeError(plan.refused)
            chosen, reason = engine.chosen(engine_name, plan.cpu_seconds, ray_address)
            if chosen == engine.SERIAL:
                plan = replace(plan, workers=1)
            watch(plan, None)
            store.create()
            if plan.batches:
                if not is_broken(sweep, store):  # else its manifest is the record of lost points
                    before = coverage(sweep, plan.ledger)  # so that `status` lists the sweep meanwhile
                    record(sweep, before, plan.ledger.parts, store, started)
                job = Job(sweep=sweep.name, limits=sweep.limits)
                watch(plan, reason or _start_of(chosen))
                outcomes = engine.run(chosen, plan.batches, job, store.place, workers, ray_address)
                with (
                    closing(outcomes),
                    _no_output_of_others(),
                    beating(store.place, sweep, plan, started=started) as tell,
                ):
                    if chosen == engine.RAY or orchestration.in_a_flow_run():
                        orchestration.under_prefect(
                            _shown_name(sweep), plan.shares, counted(outcomes), store.place.root
                        )
                    else:
                        deque(counted(outcomes), maxlen=0)
            now, parts = after(plan, reported, sweep, store)
            record(sweep, now, parts, store, started)
        except KeyboardInterrupt:
            if not plan.total:
                raise InterruptedRunError("Stopped before anything was computed.") from None
            now, _ = after(plan, reported, sweep, store)
            raise InterruptedRunError(
                f"Stopped: {now.stored} of {now.total} points are stored; the same command resumes."
            ) from None
        except StoppedError as error:
            now, _ = after(plan, reported, sweep, store)
            raise EngineError(
                f"{error}: {now.stored} of {now.total} points are stored; the same command resumes."
            ) from error
    return RunReport(
        now=now,
        before=sum(plan.stored.values()),
        computed=reported.points,
        seconds=time.monotonic() - began,
        store=store.place.address,
    )


def _shown_name(sweep: Sweep) -> str:
    """Return the name of a sweep in Prefect: a sweep typed on the command line has no file, but a problem."""
    return sweep.title if sweep.title.endswith(TYPED) else sweep.name


def _start_of(chosen: str) -> str:
    """Return words on the start of an engine."""
    if chosen == engine.SERIAL:
        return "in this process"
    return "starting Ray" if orchestration.in_a_flow_run() else "starting Prefect and Ray"


@contextmanager
def _no_output_of_others() -> Iterator[None]:
    """Keep standard output for our own results: a thread of Ray prints there when a worker dies."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        yield
