"""A disk that fails at a chosen operation: every operation that changes a folder is a numbered fault point.

Only `os.fsync` is replaced in the code under test: Python reports every file that is opened, renamed or
removed to its audit hooks, and an error raised by a hook is the error of the operation. So the fault points
are the operations themselves, whichever code causes them, and the list is complete. A hook cannot be removed
from a process, so the faults happen in children.

Writes of libraries below Python (DuckDB's snapshots) are not covered. They are derived data, and
`test_disks.py` limits them by the operating system.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEEDS_ROOM = ("open", "mkdir", "write", "sync", "rename", "link")  # a full disk still removes

_passed: list[str] = []
_at: Callable[[str, Path], None] | None = None


def watch(below: Path, strike: Callable[[int, str, Path], None]) -> list[str]:
    """Call a function before the operation of every fault point below a folder; at most once per process.

    Args:
        below: The folder; operations elsewhere are ignored.
        strike: Called with the number of the point from 0, the operation and its path. It may kill the
            process, raise OSError, or read the store; its own operations are not counted.

    Returns:
        The operations so far, as a list that grows.
    """
    global _at  # noqa: PLW0603  a hook belongs to the process
    assert _at is None, "one disk a process"
    inside = False

    def at(operation: str, path: Path) -> None:
        nonlocal inside
        if inside or not path.is_relative_to(below):
            return
        inside = True
        try:
            _passed.append(f"{operation} {path.relative_to(below)}")
            strike(len(_passed) - 1, operation, path)
        finally:
            inside = False

    _at = at
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_file():
            at("write", path)
        at("sync", path)
        real(descriptor)

    os.fsync = fsync  # type: ignore[assignment]
    sys.addaudithook(_audit)
    return _passed


def point(operation: str, folder: Path) -> None:
    """Mark a fault point that is not an operation of the disk, such as a computation."""
    if _at is not None:
        _at(operation, folder)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Translate Python's audit events for files into fault points."""
    if _at is None:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, str | bytes | os.PathLike) and isinstance(flags, int) and flags & _CHANGING:
            _at("open", Path(os.fsdecode(path)))
    elif event in ("os.rename", "os.link", "os.symlink"):
        _at("rename" if event == "os.rename" else "link", Path(os.fsdecode(arguments[1])))
    elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate"):
        folder = arguments[-1] if event != "os.truncate" else -1
        start = (
            Path(f"/proc/self/fd/{folder}").readlink() if isinstance(folder, int) and folder >= 0 else Path()
        )
        _at(event.removeprefix("os."), start / os.fsdecode(arguments[0]))


# ------------------------------------------------------------------------- kinds of faults


def kill_at(number: int) -> Callable[[int, str, Path], None]:
    """Return a strike that kills the process at a fault point; half of a file being written remains."""

    def strike(k: int, operation: str, path: Path) -> None:
        if k == number:
            _tear(operation, path)
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def kill_after(suffix: str, operation: str) -> Callable[[int, str, Path], None]:
    """Return a strike that kills the process at an operation after a rename to a name with a suffix."""
    renamed = False

    def strike(k: int, passed: str, path: Path) -> None:
        nonlocal renamed
        if renamed and passed == operation:
            os.kill(os.getpid(), signal.SIGKILL)
        renamed = renamed or (passed == "rename" and path.name.endswith(suffix))

    return strike


def fail_at(number: int, code: int) -> Callable[[int, str, Path], None]:
    """Return a strike that makes an operation fail; on a full or read-only disk, later operations fail too.

    Args:
        number: Number of the fault point.
        code: ENOSPC (from then on every operation that needs room fails), EROFS or EACCES (from then on every
            operation fails), or EIO (only this operation fails).
    """

    def strike(k: int, operation: str, path: Path) -> None:
        if operation == "compute" or k < number or (code == errno.EIO and k != number):
            return
        if code == errno.ENOSPC and operation not in _NEEDS_ROOM:
            return
        _tear(operation, path)
        raise OSError(code, os.strerror(code), str(path))

    return strike


def _tear(operation: str, path: Path) -> None:
    """Leave the first half of a file that is being written."""
    if operation == "write":
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
