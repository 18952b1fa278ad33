"""Processes that must not outlive the one that started them, however that one ends."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Have the kernel kill this process as soon as its parent is gone, be it by SIGKILL.

    The kernel looks at the thread that started this process: it has to live as long as it is needed.

    Args:
        parent: Process id of the parent, which may be gone already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
