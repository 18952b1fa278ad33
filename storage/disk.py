"""Every step that changes a file of the store, one after the other, so that tests can stop at each of them.

A command changes a store by these functions only, and each calls `step` with the name of the step and the
path just before it does anything. `step` does nothing. A test puts another function in its place, in a
process of its own: one that counts, to learn how many points of failure a command has, and then for each k
one that at its k-th call kills the process or raises what a disk would raise:

    import errno, os, signal
    from storage import disk

    calls = 0

    def fail(name, path, k=3):  # in the child, before the command: disk.step = fail
        global calls
        calls += 1
        if calls == k:
            os.kill(os.getpid(), signal.SIGKILL)  # or: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

A killed process has done all steps before the k-th and nothing of it. A file is written in two halves, each
a step, so that a kill also leaves an empty file and half a file. Snapshots under `cache` are no part of
this: they can be deleted at any time.

If the store is a bucket, each step changes the bucket, then the folder that mirrors it (`storage.bucket`).
"""

import os
import secrets
import shutil
from pathlib import Path

from storage.errors import StoreError, reason

WRITE, SYNC, RENAME, UNLINK, FOLDER, SYNC_FOLDER = STEPS = (
    "write",
    "sync",
    "rename",
    "unlink",
    "folder",
    "sync-folder",
)


def step(name: str, path: Path) -> None:
    """Do nothing; tests put a function here that counts, kills, or raises `OSError`.

    Args:
        name: One of `STEPS`.
        path: What is about to be changed; of a rename, the new name.
    """


def write(path: Path, content: bytes) -> None:
    """Write a new file and wait until its bytes are on the disk."""
    half = len(content) // 2
    step(WRITE, path)
    with path.open("xb") as file:
        file.write(content[:half])
        file.flush()
        step(WRITE, path)
        file.write(content[half:])
        file.flush()
        step(SYNC, path)
        os.fsync(file.fileno())


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that every reader sees all of it or nothing, also after a crash.

    Args:
        path: File that is to appear; missing folders are made.
        content: Its bytes.

    Raises:
        StoreError: The disk refused; nothing is left behind.
    """
    temporary = path.parent / f".{path.name[:80]}.{secrets.token_hex(8)}.tmp"
    try:
        make_folder(path.parent)
        try:
            write(temporary, content)
            rename(temporary, path)
        except BaseException:
            unlink(temporary)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {reason(error)}.") from error


def rename(old: Path, new: Path) -> None:
    """Give a file or folder another name; a file that had it before is replaced."""
    step(RENAME, new)
    old.rename(new)


def unlink(path: Path) -> None:
    """Delete a file; one that is gone already is no error."""
    step(UNLINK, path)
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Delete a folder with all that is in it."""
    step(UNLINK, path)
    shutil.rmtree(path)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each so that it survives a power loss."""
    if path.is_dir():
        return
    make_folder(path.parent)
    step(FOLDER, path)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make what was renamed into a folder, or deleted there, survive a power loss."""
    step(SYNC_FOLDER, path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
