"""The side of a peer that answers; run by path, since one of the peers has a package `tests` of its own."""

import json
import math
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

MOST_BYTES = 8 * 2**30
ANSWER = "answer: "
GRACE = 1
"""Seconds in which compiled code may return after the alarm, before the kernel ends the process."""


class LateError(BaseException):
    """A run took longer than its limit; no `except Exception` of a peer holds it up."""


def serve(functions: Mapping[str, Callable[..., Any]], first: Mapping[str, dict[str, Any]]) -> None:
    """Answer the questions that come in, a line of JSON each, until there are no more.

    An alarm of processor time ends a run that takes longer than its limit; if need be, with the process.

    Args:
        functions: By name.
        first: Arguments of a small call, by function; it compiles and loads outside the clock.
    """
    from measure import forget, measured  # type: ignore[import-not-found]  # beside the script

    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGPROF, _late)
    cold = dict(first)
    for line in sys.stdin:
        question = json.loads(line)
        name = question["function"]
        if name in cold:
            functions[name](**cold.pop(name))

        def run(question: dict[str, Any] = question) -> Any:
            signal.setitimer(signal.ITIMER_PROF, question["limit"])
            last = math.ceil(time.process_time() + question["limit"]) + GRACE
            resource.setrlimit(resource.RLIMIT_CPU, (last, resource.RLIM_INFINITY))
            try:
                return functions[question["function"]](**question["arguments"])
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
                resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        try:
            found = measured(run, before=forget, runs=question["runs"]).as_fields()
        except LateError:
            found = {"error": f"> {question['limit']:g} s"}
        except Exception as error:  # noqa: BLE001  the table shows what the peer says, whatever it is
            found = {"error": f"{type(error).__name__}: {error}"[:120].replace("|", "/").replace("\n", " ")}
        print(f"{ANSWER}{json.dumps(found)}", flush=True)


def _late(number: int, frame: object) -> None:
    """End the run by an exception; compiled code does not hear it."""
    raise LateError
