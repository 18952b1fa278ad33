"""Signals that let a process clean up before it ends: SIGTERM as Ctrl-C, and the exit of its parent."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from tasks.own_process import wait_for_end


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, if this thread can handle signals."""

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


@cache  # a flow that is tried again has the same parent
def end_with_parent() -> Callable[[], bool]:
    """Request SIGTERM on parent exit; return a callable that says whether the parent has exited.

    From then on, output of this process is discarded: it may have gone through the parent, and a pipe without
    a reader would end the next thread that prints. A parent in another container is not watched.
    """
    gone = threading.Event()
    if (parent := os.getppid()) == 0:  # it is in another container
        return gone.is_set

    def wait() -> None:
        wait_for_end(parent)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        gone.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
    return gone.is_set
