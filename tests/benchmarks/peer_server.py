"""Server side of a peer; run by path, because one of the peers has its own package `tests`."""

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
"""Seconds that compiled code may run after the alarm, before the kernel ends the process."""


class LateError(BaseException):
    """A run took longer than its limit; `except Exception` in a peer does not catch it."""


def serve(functions: Mapping[str, Callable[..., Any]], first: Mapping[str, dict[str, Any]]) -> None:
    """Answer questions, one line of JSON each, until the input ends.

    An alarm of processor time ends a run that takes longer than its limit, if necessary with the process.

    Args:
        functions: Functions by name.
        first: Arguments of a small call, by function, that compiles and loads code before the measurement.
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
    """End the run by an exception, which does not interrupt compiled code."""
    raise LateError
