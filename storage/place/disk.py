"""Every step that changes a file of the store, so that tests can stop a command at each step.

Commands change a store by these functions only. Each function calls `step` with the name of the step and the
path just before it acts. `step` does nothing; a test replaces it, in a separate process, first by a function
that counts the steps of a command, and then, for each k, by a function that at its k-th call kills the
process or raises an error of a disk:

    import errno, os, signal
    from storage.place import disk

    calls = 0

    def fail(name, path, k=3):  # in the child, before the command: disk.step = fail
        global calls
        calls += 1
        if calls == k:
            os.kill(os.getpid(), signal.SIGKILL)  # or: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

A killed process has done all steps before the k-th, and nothing of the k-th. A file is written in two halves,
each of them a step, so that a kill can also leave an empty file or half a file. Snapshots under `cache` are
exempt, since they can be deleted at any time.

If the store is in a bucket, each step changes the bucket, then the folder that mirrors it (`bucket.py`).
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    """Do nothing; tests replace this by a function that counts, kills, or raises `OSError`.

    Args:
        name: One of `STEPS`.
        path: The file or folder that is about to change; for a rename, the new name.
    """


def write(path: Path, content: bytes) -> None:
    """Write a new file, and wait until its bytes are on the disk."""
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
    """Write a file atomically: readers find all of it or nothing, also after a crash.

    Args:
        path: The file; missing folders are created.
        content: Its bytes.

    Raises:
        StoreError: The disk refused; no partial file remains.
    """
    with replacing(path) as temporary:
        write(temporary, content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that gets the name of another file when the block ends without an error.

    Args:
        path: The other file; missing folders are created.

    Raises:
        StoreError: The disk refused; no partial file remains.
    """
    temporary = path.parent / f".{path.name[:80]}.{secrets.token_hex(8)}.tmp"
    try:
        make_folder(path.parent)
        try:
            yield temporary
            rename(temporary, path)
        except BaseException:
            unlink(temporary)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {reason(error)}.") from error


def rename(old: Path, new: Path) -> None:
    """Rename a file or folder; an existing file of the new name is replaced."""
    step(RENAME, new)
    old.rename(new)


def unlink(path: Path) -> None:
    """Delete a file if it exists."""
    step(UNLINK, path)
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Delete a folder with all its contents."""
    step(UNLINK, path)
    shutil.rmtree(path)


def make_folder(path: Path) -> None:
    """Create a folder and its parents so that they survive a power loss."""
    if path.is_dir():
        return
    make_folder(path.parent)
    step(FOLDER, path)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the renames and deletions in a folder survive a power loss."""
    step(SYNC_FOLDER, path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Folders that only this user can read or change, also if other users can write next to them.

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> bool:
    """Create a folder that only this user can open, or close an existing one to others.

    An existing folder is left as it is if it is a link, or if another user owns it or could write into it:
    its files may be planted.

    Returns:
        Whether the folder is private. If others can rename it, it may later be replaced: see `is_sheltered`.
    """
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        # The rest is about the opened folder, even if another one has its name by now.
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            status = os.fstat(opened)
            if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
                return False
            if stat.S_IMODE(status.st_mode) & 0o077:
                os.fchmod(opened, 0o700)
            return True
        finally:
            os.close(opened)
    return False


def is_sheltered(folder: Path) -> bool:
    """Return whether no other user can rename or replace the entries of a folder that belong to this user.

    The folder and all folders above must belong to this user or to root. Others may write into a folder only
    if it is sticky, as /tmp is: then only the owner of an entry can rename it.

    Args:
        folder: An absolute path without links.
    """
    try:
        statuses = [each.lstat() for each in (folder, *folder.parents)]
    except OSError:
        return False
    return all(
        status.st_uid in {0, os.geteuid()}
        and (not status.st_mode & _OTHERS_WRITE or status.st_mode & stat.S_ISVTX)
        for status in statuses
    )


def without_links(path: str, flags: int) -> int:
    """Open a file, but not through a link of its name; an argument `opener` of `open`."""
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o600)
