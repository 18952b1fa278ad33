"""Signals that let a process clean up before it ends: SIGTERM, SIGHUP, and the exit of its parent."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from tasks.own_process import wait_for_end


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Treat SIGTERM, and SIGHUP of a closed terminal, like Ctrl-C, if this thread can handle signals."""
    terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def interrupt(number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)  # the shell may send it, too
            _discard([stream for stream in terminals if not os.isatty(stream)])
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as after nohup
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)


def _discard(streams: Iterable[int]) -> None:
    """Discard the output of this process to these file descriptors."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)


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
        _discard([1, 2])
        gone.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
    return gone.is_set
