"""The parent death signal: a process that ends with its parent, also if the parent is killed."""

import ctypes
import os
import signal
import threading
import time

EVERY = 0.5
"""Seconds between two looks at the parent, on systems that do not report its end."""

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends, also by SIGKILL.

    The signal depends on the thread that started this process, which must live as long as the process. Only
    Linux has it; elsewhere a thread looks after the parent, and compiled code may delay it.

    Args:
        parent: Process id of the parent, which may have ended already.
    """
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except AttributeError:
        threading.Thread(target=_end_after, args=(parent,), name="parent", daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _end_after(parent: int) -> None:
    wait_for_end(parent)
    os._exit(1)


def wait_for_end(parent: int) -> None:
    """Wait until the parent of this process has ended; then the process has another parent."""
    while os.getppid() == parent:
        time.sleep(EVERY)
