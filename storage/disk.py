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

Where the store is a bucket, each step changes the bucket, then the folder that mirrors it.
"""

import os
import shutil
from pathlib import Path

from storage.located import bucket_of

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


def put(path: Path, content: bytes) -> bool:
    """Write a file whose store is a bucket; return False, having done nothing, where it is none."""
    bucket = bucket_of(path)
    if bucket is None:
        return False
    step(WRITE, path)
    bucket.put(path, content)
    return True


def rename(old: Path, new: Path) -> None:
    """Give a file or folder another name; a file that had it before is replaced."""
    if bucket := bucket_of(old):
        files = [old] if old.is_file() else sorted(path for path in old.rglob("*") if path.is_file())
        for path in files:
            target = new / path.relative_to(old)
            step(RENAME, target)
            bucket.copy(path, target)
            unlink(path)
            bucket.take(target)
        shutil.rmtree(old, ignore_errors=True)
        return
    step(RENAME, new)
    old.rename(new)


def unlink(path: Path) -> None:
    """Delete a file; one that is gone already is no error."""
    step(UNLINK, path)
    if bucket := bucket_of(path):
        bucket.delete(path)
    path.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Delete a file or folder; one that is gone already is no error."""
    if path.is_dir() and not path.is_symlink():
        if bucket_of(path):
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    unlink(file)
        step(UNLINK, path)
        shutil.rmtree(path)
    else:
        unlink(path)


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
