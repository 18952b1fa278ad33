"""What ends a process kindly and lets it tidy up: SIGTERM as Ctrl-C, and the end of whoever started it."""

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
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


def end_with_parent() -> Callable[[], bool]:
    """Have SIGTERM sent to this process when the one that started it ends; return what tells whether it has.

    What this process prints goes nowhere from then on. It may have gone through the parent, and a pipe that
    nobody reads would end whichever thread comes first to print something.
    """
    gone = threading.Event()
    parent = os.pidfd_open(os.getppid())

    def wait() -> None:
        poll = select.poll()
        poll.register(parent, select.POLLIN)
        poll.poll()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        gone.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
    return gone.is_set
