"""Signals that let a process clean up before it ends: SIGTERM as Ctrl-C, and the exit of its parent."""

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


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
    a reader would end the next thread that prints. If the system cannot report the exit of processes, the
    parent is not watched.
    """
    gone = threading.Event()
    try:
        parent = os.pidfd_open(os.getppid())
    except OSError:  # refused by a sandbox, or the parent is in another container
        return gone.is_set

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
