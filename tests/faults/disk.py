"""A disk that fails at a chosen operation: every one that changes a folder is a numbered fault point.

Nothing in the code under test is replaced but `os.fsync`: Python itself tells its audit hooks of every file
that is opened, renamed or removed, and an error that a hook raises is the error of the operation. So the
points are those of the operating system, whoever asks for them, and none is forgotten. A hook stays for the
life of its process, which is why all this happens in children.

What the libraries below Python write (DuckDB's snapshots) is not seen. It is derived data, and
`test_disks.py` limits it by the operating system.
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
    """Have a function called at every fault point below a folder, before the operation; once a process.

    Args:
        below: The folder; what happens elsewhere is left alone.
        strike: Called with the number of the point from 0, the operation and its path. It may kill the
            process, raise OSError, or look at the store; what it does itself is not counted.

    Returns:
        The operations so far, a list that grows.
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
    """Be a fault point that is no operation of the disk, such as a computation."""
    if _at is not None:
        _at(operation, folder)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Translate what Python tells about files into fault points."""
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


# ------------------------------------------------------------------------- what can strike


def kill_at(number: int) -> Callable[[int, str, Path], None]:
    """Return what kills the process at a fault point; of a file that it writes, half is there."""

    def strike(k: int, operation: str, path: Path) -> None:
        if k == number:
            _tear(operation, path)
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def fail_at(number: int, code: int) -> Callable[[int, str, Path], None]:
    """Return what makes an operation fail, and with a full or read-only disk all later ones too.

    Args:
        number: Of the fault point.
        code: ENOSPC (whatever needs room fails from there on), EROFS or EACCES (everything fails from there
            on), or EIO (only this operation fails).
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
    """Leave the first half of what is being written."""
    if operation == "write":
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
