"""The priority of a process that only watches a run."""

import os
from contextlib import suppress
from pathlib import Path

NICENESS = 19  # Ray gives its workers 15
OF_SESSION = 10
"""Some kernels divide processors among sessions first, without regard to the niceness of processes."""


def give_way() -> None:
    """Let the workers of a run start first; call it in a process with a session of its own."""
    os.nice(NICENESS)
    _set_session(os.getpid(), OF_SESSION)


def catch_up(process: int) -> None:
    """Let a process that gave way have as much of the processors as the kernel still allows."""
    _set_session(process, 0)


def _set_session(process: int, niceness: int) -> None:
    with suppress(OSError):  # this kernel does not divide processors among sessions, or the process ended
        Path(f"/proc/{process}/autogroup").write_text(str(niceness))
