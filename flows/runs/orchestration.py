"""A Prefect flow around a sweep: Prefect shows the progress, and the store holds the results."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import islice
from math import ceil
from pathlib import Path

from flows.runs.server import SchedulerError, own_server
from flows.runs.signals import sigterm_interrupts
from privcore.extras import require
from tasks.work import Done

STAGES = 20  # Prefect task runs of a sweep, at most: its server records some twenty a second
STAGES_ON_SERVER = 4  # in a deployment: with its progress, each leaves 40 rows in a permanent database
DRAIN_SECONDS = 10.0  # for Prefect to send the rest to its server, before we stop the server


def under_prefect(name: str, batches: int, outcomes: Iterator[Done | None], store: Path) -> None:
    """Consume the outcomes in a Prefect flow, in a few task runs that show the progress.

    If a flow run is already active, as in a deployment, its task runs do this, and neither a flow nor a
    server is started. Otherwise our own server starts while the first outcomes arrive; they count towards the
    first task run. Prefect only watches: errors and interruptions bypass it, so that they reach the caller
    at once and unchanged, and if its server dies, the remaining outcomes are consumed without it.

    Args:
        name: Name of the flow run.
        batches: Number of batches.
        outcomes: Their outcomes, and None from time to time; the first `next` starts the workers.
        store: Folder of the store.

    Raises:
        MissingPackageError: Prefect is not installed.
        SchedulerError: Prefect did not start.
    """
    require("prefect", "The engine ray")
    begun = False
    ended_by: list[BaseException] = []
    active = in_a_flow_run()
    stages = min(STAGES_ON_SERVER if active else STAGES, batches)
    with nullcontext(0) if active else _prefect(store, outcomes) as early:
        finished = (done for done in outcomes if done is not None)
        from prefect import flow, task
        from prefect.client.schemas.objects import State
        from prefect.states import Cancelled, Completed, Failed

        @task(name="batches", task_run_name="stage {number} of {stages}", persist_result=False)
        def stage(number: int, stages: int) -> State[int]:
            share = finished if number == stages else islice(finished, ceil(batches / stages))
            try:
                points = sum(done.points for done in share) + (early if number == 1 else 0)
                return Completed(message=f"{points} points")
            except BaseException as error:  # noqa: BLE001  raised again below
                ended_by.append(error)
                return Failed(message=f"{type(error).__name__}: {error}")

        def watched() -> None:
            nonlocal begun
            begun = True
            with sigterm_interrupts():  # Prefect installs its own handler here
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
        raise ended_by.pop()  # and release its traceback
    for _ in outcomes:
        pass


def in_a_flow_run() -> bool:
    """Return whether a flow run called us, without importing Prefect, which would read its settings."""
    if "prefect.context" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


@contextmanager
def _prefect(store: Path, outcomes: Iterator[Done | None]) -> Iterator[int]:
    """Let Prefect report to our own server, unless the user has named a server.

    Yields the number of points that finished before the server answered. Its state is in a hidden folder next
    to the store, so that the user's profiles are not read or changed; only this user can open the folder.
    """
    if {"PREFECT_API_URL", "PREFECT_PROFILE"} & os.environ.keys():
        yield 0
        return
    home = Path(os.environ.setdefault("PREFECT_HOME", str(_hidden_folder(store.absolute()))))
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    with own_server(home) as server:
        early = sum(done.points for done in islice(outcomes, 1) if done)
        server.catch_up()
        from prefect import settings  # here: the workers compute while it is imported, which takes a second
        from prefect.events.worker import EventsWorker

        if not server.answers():
            for done in outcomes:
                early += done.points if done else 0
                if server.answers():
                    break
            server.wait()
        ours = {
            settings.PREFECT_API_URL: server.address,
            settings.PREFECT_API_AUTH_STRING: server.password,
            settings.PREFECT_CLIENT_MAX_RETRIES: 0,  # our own server does not come back
            settings.PREFECT_LOGGING_LEVEL: "CRITICAL",  # our commands print errors in one sentence
        }
        with settings.temporary_settings(ours):
            try:
                yield early
            finally:
                # In a thread of its own: in a notebook, the loop of the kernel would make this a coroutine.
                with ThreadPoolExecutor(max_workers=1) as thread:
                    thread.submit(EventsWorker.drain_all, timeout=DRAIN_SECONDS, at_exit=False).result()


def _hidden_folder(store: Path) -> Path:
    """Return the folder of this user for Prefect's state, next to the store or else in it."""
    folder = (store.parent if os.access(store.parent, os.W_OK) else store) / ".prefect"
    if not folder.exists():
        return folder
    if folder.stat().st_uid != os.getuid():
        return folder.with_name(f".prefect-{os.getuid()}")
    folder.chmod(0o700)  # an earlier release let others in
    return folder
