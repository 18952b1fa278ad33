"""The parent death signal: a process that ends with its parent, also if the parent is killed."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent ends, also by SIGKILL.

    The signal depends on the thread that started this process, which must live as long as the process.

    Args:
        parent: Process id of the parent, which may have ended already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
