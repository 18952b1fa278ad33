"""Child processes for faults, forked from a process that has imported everything, so that each is cheap."""

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tests.busy import stretched

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.faults.sweeps"])

PATIENCE = 120.0  # seconds allowed to a child, even on a busy machine


@dataclass(frozen=True, kw_only=True)
class Ending:
    """End of a child: its exit code, negative for a signal, and the value or error of its function."""

    code: int
    value: Any = None
    error: BaseException | None = None

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.code == -9


class Child:
    """A function that runs in a separate process."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._answer, theirs = FORKED.Pipe(duplex=False)
        self.process = FORKED.Process(target=_work, args=(theirs, function, arguments))
        self.process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.is_alive()

    def end(self) -> Ending:
        """Wait for the end of the process; if it does not end, it is killed and the test fails."""
        value: Any = None
        error: BaseException | None = None
        try:
            if self._answer.poll(stretched(PATIENCE)):
                value, error = self._answer.recv()
        except EOFError:  # it was killed before it sent its result
            pass
        self.process.join(stretched(PATIENCE))
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError(f"still running after {PATIENCE} s")
        self._answer.close()
        return Ending(code=self.process.exitcode, value=value, error=error)


def run(function: Callable[..., Any], *arguments: Any) -> Ending:
    """Run a function of a module in a child, and wait for its end."""
    return Child(function, *arguments).end()


def value_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the value of a function that runs in a child without faults."""
    ending = run(function, *arguments)
    if ending.error is not None:
        raise ending.error
    assert ending.code == 0
    return ending.value


def _work(answer: "Connection[Any, Any]", function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Call the function and send its value, or its error."""
    value: Any = None
    error: BaseException | None = None
    try:
        value = function(*arguments)
    except BaseException as raised:  # noqa: BLE001  the parent decides what it means
        error = raised
    answer.send((value, error))
    answer.close()
