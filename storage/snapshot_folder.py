"""The folder of the snapshots of a store, in which no other user can exchange files."""

import hashlib
import os
from pathlib import Path

from storage.errors import StoreError
from storage.folder import Folder
from storage.layout import CACHE
from storage.located import cache_folder
from storage.private_folder import is_sheltered, make_private

FOLDER = "snapshots"
"""Folder of the records of snapshots, and of snapshots, in the user's cache folder."""


def snapshot_folder(place: Folder) -> Path | None:
    """Return the folder `cache` of a store, or a private folder of this user if others can change `cache`.

    A snapshot is hashed before DuckDB opens it. Another user who can rename the files of a folder could put
    a forged file there in between.

    Returns:
        The folder, which may be missing; None if this user cannot have a private one.
    """
    cache = place.root / CACHE
    changed = cache if os.path.lexists(cache) else place.root
    if not cache.is_symlink() and is_sheltered(changed.absolute().resolve()):
        return cache
    try:
        root = os.fsencode(place.root.resolve())
        folder = records_folder() / hashlib.blake2b(root, digest_size=16).hexdigest()
    except (StoreError, OSError):
        return None
    return folder if make_private(folder) else None


def records_folder() -> Path:
    """Return the private folder for the records of the snapshots that this user built.

    Raises:
        StoreError: The folder is not private, or the user has no home folder.
    """
    folder = cache_folder() / FOLDER
    if not make_private(folder):
        raise StoreError(f"Expected {folder} to be a folder in which only this user can write.")
    return folder
