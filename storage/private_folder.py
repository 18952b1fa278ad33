"""Folders that only this user can read or change, also if other users can write next to them."""

import os
import stat
from contextlib import suppress
from pathlib import Path

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
