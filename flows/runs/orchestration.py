"""A Prefect flow around a sweep: it shows how far the sweep is, and the store decides what that means."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from math import ceil
from pathlib import Path

from flows.runs.server import SchedulerError, own_server
from flows.runs.signals import sigterm_interrupts
from tasks.work import Done

STAGES = 20  # Prefect task runs of a sweep, at most: its server records some twenty a second
STAGES_ON_SERVER = 4  # of a deployment: with its progress, each leaves 40 rows in a database that is kept
DRAIN_SECONDS = 10.0  # for Prefect to tell its server the rest, before we stop that


def under_prefect(name: str, batches: int, outcomes: Iterator[Done], store: Path) -> None:
    """Let a Prefect flow consume the outcomes, in a few task runs that show how far it is.

    Where a flow run is active already, as in a deployment, its own task runs do that, and neither a flow nor
    a server is started. Prefect watches, it does not decide: errors and interruptions are kept from it, so
    that they reach the caller at once and unchanged, and what it leaves undone because its server died is
    done without it.
    """
    begun = False
    ended_by: list[BaseException] = []
    active = _in_a_flow_run()
    stages = min(STAGES_ON_SERVER if active else STAGES, batches)
    with nullcontext() if active else _prefect(store):
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

        def watched() -> None:
            nonlocal begun
            begun = True
            with sigterm_interrupts():  # here Prefect has a handler of its own
                for number in range(1, stages + 1):
                    if not ended_by:
                        stage(number, stages, return_state=True)

        @flow(name="privsweep", flow_run_name=name, validate_parameters=False, persist_result=False)
        def sweep() -> State[int]:
            watched()
            if not ended_by:
                return Completed()
            interrupted = isinstance(ended_by[0], KeyboardInterrupt)
            return Cancelled(message="Interrupted") if interrupted else Failed(message=str(ended_by[0]))

        try:
            watched() if active else sweep(return_state=True)
        except Exception as error:
            if not begun:
                raise SchedulerError(f"Prefect did not start: {type(error).__name__}: {error}.") from error
    if ended_by:
        raise ended_by.pop()  # and let go of its traceback, see above
    for _ in outcomes:
        pass


def _in_a_flow_run() -> bool:
    """Return whether a flow run called us; asked without importing Prefect, which reads its settings then."""
    if "prefect.context" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


@contextmanager
def _prefect(store: Path) -> Iterator[None]:
    """Have Prefect report to a server of our own, unless the user has named one.

    Its state lies in a hidden folder beside the store, so that no profile of the user's is read or changed.
    """
    if {"PREFECT_API_URL", "PREFECT_PROFILE"} & os.environ.keys():
        yield
        return
    store = store.absolute()
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
