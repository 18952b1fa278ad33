"""A Prefect flow around a sweep: Prefect shows the progress, and the store holds the results."""

import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

from flows.runs.progress import Pace
from flows.runs.server import HomeError, SchedulerError, own_server
from flows.runs.signals import signals_interrupt
from privcore.extras import require
from storage.errors import StoreError
from storage.place.disk import is_sheltered, make_private
from storage.place.located import CACHE_VARIABLE, cache_folder
from tasks.work import Done

_CHOICES = frozenset({"PREFECT_API_URL", "PREFECT_PROFILE"})
"""Variables by which the user names a server."""
DRAIN_SECONDS = 10.0  # for Prefect to send the rest to its server, before we stop the server


def under_prefect(name: str, pace: Pace, outcomes: Iterator[Done | None], store: Path) -> None:
    """Consume the outcomes in a Prefect flow, with a task run for each problem and method.

    If a flow run is already active, as in a deployment, the task runs belong to it, and neither a flow nor a
    server is started. Otherwise our own server starts after the first outcome. Prefect only watches:
    errors and interruptions bypass it, so that they reach the caller at once and unchanged, and if its server
    dies, the remaining outcomes are consumed without it.

    Args:
        name: Name of the sweep, with which the name of the flow run begins.
        pace: The progress of the run.
        outcomes: Outcomes of batches that its tally has, and None from time to time; the first `next` starts
            the workers.
        store: Folder of the store.

    Raises:
        MissingPackageError: Prefect is not installed.
        SchedulerError: Prefect did not start.
    """
    require("prefect", "The engine ray")
    begun = False
    ended_by: list[BaseException] = []
    active = in_a_flow_run()
    began = datetime.now(UTC)
    nothing: AbstractContextManager[list[Done]] = nullcontext([])
    with nothing if active else _prefect(store, outcomes) as early:
        from prefect import flow
        from prefect.client.schemas.objects import State
        from prefect.states import Cancelled, Failed

        from flows.runs.method_runs import MethodRuns

        def watched() -> MethodRuns:
            nonlocal begun
            begun = True
            methods = MethodRuns(pace)
            with signals_interrupt():  # Prefect installs its own handler here
                try:
                    for done in chain(early, outcomes):
                        if done is not None:
                            methods.show(done)
                except BaseException as error:  # noqa: BLE001  raised again below
                    ended_by.append(error)
                methods.end(ended_by[0] if ended_by else None)
            return methods

        named = run_name(name, began)

        @flow(name="privsweep", flow_run_name=named, validate_parameters=False, persist_result=False)
        def sweep() -> State[None]:
            methods = watched()
            if not ended_by:
                return methods.state()
            interrupted = isinstance(ended_by[0], KeyboardInterrupt)
            return Cancelled(message="Interrupted") if interrupted else Failed(message=str(ended_by[0]))

        try:
            watched() if active else sweep(return_state=True)
        except Exception as error:
            if not (begun or early):  # else our own server has died: the run goes on without it
                raise SchedulerError(_not_started(error)) from error
    if ended_by:
        raise ended_by.pop()  # and release its traceback
    for _ in outcomes:
        pass


def _not_started(error: Exception) -> str:
    """Return a sentence about an error at the start of Prefect, with the variable that chose a server."""
    first_line = str(error).partition("\n")[0]
    reason = f"{type(error).__name__}: {first_line}"
    if name := min(_CHOICES & os.environ.keys(), default=""):  # the address has precedence over a profile
        sentence = (
            f"Prefect did not start with {name}={os.environ[name]} ({reason}): start that server, or unset "
            f"{name} to let the run start its own."
        )
        return re.sub(r"(?<=//)[^/\s]*@|\?[^\s)]*", "", sentence)  # without a password
    return f"Prefect did not start: {reason}."


def run_name(sweep: str, began: datetime) -> str:
    """Return the name of a run in Prefect.

    Args:
        sweep: Name of the sweep.
        began: When it began, or was to begin, with a time zone.

    Example:
        >>> run_name("lookup", datetime(2026, 11, 23, 3, 5, tzinfo=UTC))
        'lookup 2026-11-23 03:05 UTC'
    """
    return f"{sweep} {began.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def in_a_flow_run() -> bool:
    """Return whether a flow run called us, without importing Prefect, which would read its settings."""
    if "prefect.context" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


@contextmanager
def _prefect(store: Path, outcomes: Iterator[Done | None]) -> Iterator[list[Done]]:
    """Let Prefect report to our own server, unless the user has named a server.

    Yields the outcomes that arrived before the server answered. Its state is in a hidden folder next
    to the store, so that the user's profiles are not read or changed; only this user can open the folder.
    """
    if _CHOICES & os.environ.keys():
        yield []
        return
    _refuse_foreign_settings(Path(".env"))
    if "PREFECT_HOME" not in os.environ:
        os.environ["PREFECT_HOME"] = str(_hidden_folder(store.absolute()))
    home = Path(os.environ["PREFECT_HOME"])
    # Else a file of the working folder, such as prefect.toml, may name them, and Prefect executes the latter.
    os.environ.setdefault("PREFECT_PROFILES_PATH", str(home.absolute() / "profiles.toml"))
    if "PREFECT_LOGGING_SETTINGS_PATH" not in os.environ:
        os.environ.setdefault("PREFECT_LOGGING_CONFIG_PATH", str(home.absolute() / "logging.yml"))
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    early = [done for done in islice(outcomes, 1) if done]  # until then, the workers have all processors
    with own_server(home) as server:
        from prefect import settings  # here: the workers compute while it loads, which takes a second
        from prefect.events.worker import EventsWorker

        if not server.answers():
            for done in outcomes:
                early += [done] if done else []
                if server.answers():
                    break
            server.wait()
        ours = {
            settings.PREFECT_API_URL: server.address,
            settings.PREFECT_API_AUTH_STRING: server.password,
            settings.PREFECT_CLIENT_MAX_RETRIES: 2,  # a busy server answers 503
            settings.PREFECT_LOGGING_LEVEL: "CRITICAL",  # our commands print errors in one sentence
        }
        with settings.temporary_settings(ours):
            try:
                yield early
            finally:
                # In a thread of its own: in a notebook, the loop of the kernel would make this a coroutine.
                with ThreadPoolExecutor(max_workers=1) as thread:
                    thread.submit(EventsWorker.drain_all, timeout=DRAIN_SECONDS, at_exit=False).result()


def _refuse_foreign_settings(file: Path) -> None:
    """Refuse settings of Prefect in the working folder that are another user's, since they can name code.

    Raises:
        HomeError: The file is another user's and has such settings.
    """
    foreign = False
    with suppress(OSError, ValueError):
        text = file.read_text(encoding="utf-8").lower()
        foreign = "prefect_" in text and file.stat().st_uid not in {0, os.getuid()}
    if foreign:
        raise HomeError(
            f"Expected settings of Prefect that only you can write, but {file.absolute()} belongs to another "
            "user: run from another folder."
        )


def _hidden_folder(store: Path) -> Path:
    """Return the private folder of this user for Prefect's state: next to the store, in it, or in the cache.

    Prefect runs code that its configuration in this folder names, so no other user may write there.

    Raises:
        HomeError: No folder is private.
    """
    beside = (store.parent if os.access(store.parent, os.W_OK) else store).resolve()
    if is_sheltered(beside):
        # A folder `.prefect` may belong to another user of the same parent folder.
        for folder in (beside / ".prefect", beside / f".prefect-{os.getuid()}"):
            if make_private(folder):
                return folder
    with suppress(StoreError):  # the user has no home folder
        if make_private(folder := cache_folder() / "prefect"):
            return folder
    raise HomeError(
        f"Expected a folder for Prefect's state that only this user can write, got none next to {store} and "
        f"none in the user's cache: set PREFECT_HOME or {CACHE_VARIABLE} to such a folder."
    )
