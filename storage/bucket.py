"""A store in a bucket, s3://bucket/prefix, behind a folder that mirrors it.

The bucket is authoritative: readers first make the folder equal to it (`refresh`), and writers change the
bucket before the folder. The rest of the package therefore works with folders only. An object appears whole
and is listed at once, as a file does after a rename, and a new object is put only if no object has its name.
"""

import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage import disk, mirror
from storage.errors import StoreError
from storage.folder import Folder
from storage.layout import MARK
from storage.mirror import RECORDS, SWEEPS, is_mirrored
from storage.objects import Listing, Objects

_TRIES = 10  # listings, since objects may vanish during one of them


class Bucket(Folder):
    """A store in a bucket; its root is the mirror, which exists only if the store does.

    Attributes:
        endpoint: Address of the server, or "" for the server of AWS.
    """

    is_remote = True

    def __init__(self, address: str, endpoint: str, root: Path) -> None:
        super().__init__(root)
        self.name = self.address = address
        self.endpoint = endpoint
        self._objects = Objects(address, endpoint)
        self._refreshed = -math.inf
        mirror.make(root, address, endpoint)

    def shown(self, path: object) -> str:
        """Return the address of the object that a file mirrors, or the path of any other file."""
        below = Path(str(path))
        if below == self.root:
            return self.address
        return self._objects.place(self._name(below)) if below.is_relative_to(self.root) else str(path)

    def refresh(self, *, older_than: float = 0.0, afresh: bool = False) -> None:
        """Make the mirror equal to the bucket."""
        if time.monotonic() - self._refreshed < older_than:
            return
        if afresh:
            mirror.forget(self.root)
        self.pull()
        self._refreshed = time.monotonic()

    def _create(self, content: bytes) -> None:
        """Put the mark of the store, unless the address has other objects."""
        if self.take(self.root / MARK):
            return
        self.refresh()  # clears the mirror of a store that was deleted
        foreign = self.foreign()
        if foreign and not self.take(self.root / MARK):  # another machine may have created the store
            raise StoreError(f"Expected a store or no objects, got {self.address}, which has {foreign}.")
        if not foreign:
            self.write(self.root / MARK, content)

    def write(self, path: Path, content: bytes) -> None:
        """Write the object of a file atomically, then the file."""
        disk.step(disk.WRITE, path)
        self.put(path, content)

    def rename(self, old: Path, new: Path) -> None:
        """Rename the object of a file, or the objects of all files in a folder."""
        files = [old] if old.is_file() else sorted(path for path in old.rglob("*") if path.is_file())
        for path in files:
            target = new / path.relative_to(old)
            disk.step(disk.RENAME, target)
            self._objects.copy(self._name(path), self._name(target))
            self.unlink(path)
            self.take(target)
        shutil.rmtree(old, ignore_errors=True)

    def remove(self, path: Path) -> None:
        """Delete the object of a file, or the objects of all files in a folder."""
        if path.is_dir() and not path.is_symlink():
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    self.unlink(file)
        super().remove(path)

    def put(self, path: Path, content: bytes) -> None:
        """Write the object of a file, then fetch the file from the bucket.

        An existing object of the same content is kept, and otherwise replaced.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        self._objects.put(self._name(path), content)
        self.take(path)

    def take(self, path: Path) -> bool:
        """Fetch the object of a file, and return whether it exists.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        found = self._objects.named(self._name(path))
        if not found:
            return False
        with self._scratch() as scratch:
            fetched = self._objects.fetch(found, scratch)
            self._install(fetched)
        return bool(fetched)

    def delete(self, path: Path) -> None:
        """Delete the object of a file, then the file, if they exist.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        name = self._name(path)
        if is_mirrored(name):
            self._objects.delete(name)
            self._make_mirror()
            mirror.discard(self.root, name)
        path.unlink(missing_ok=True)

    def foreign(self) -> str:
        """Return the key of some object below the address, or "" if there are no objects.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        found = self._objects.first()
        return str(found["Key"]) if found else ""

    def pull(self) -> None:
        """Make the folder equal to the bucket.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        self._make_mirror()
        mirror.remove_strays(self.root)
        for _ in range(_TRIES):
            with self._scratch() as scratch:
                if self._pulled(scratch):
                    return
        raise StoreError(f"Cannot read {self.address}: its objects change too quickly; try again.")

    def _pulled(self, scratch: Path) -> bool:
        """Make the folder equal to the bucket; return False if the listing may be incomplete.

        Sweeps are listed first and installed last, since a sweep is written after its parts. If the record of
        a replacement is new, parts were replaced during the listing, whose pages may then show neither the
        old parts nor the new one.
        """
        known = mirror.tags(self.root)
        if not self.take(self.root / MARK):  # not a store: do not list it, since it may be very large
            mirror.clear(self.root, known)
            return True
        sweeps = self._objects.listed(SWEEPS)
        wanted_sweeps = self._changed(sweeps, known)
        fetched_sweeps = self._objects.fetch(wanted_sweeps, scratch)
        rest = {name: info for name, info in self._objects.listed("").items() if not name.startswith(SWEEPS)}
        wanted = self._changed(rest, known)
        fetched = self._objects.fetch(wanted, scratch)
        self._install(fetched)
        vanished = wanted.keys() - fetched.keys() or wanted_sweeps.keys() - fetched_sweeps.keys()
        if vanished or any(name.startswith(RECORDS) and name not in known for name in wanted):
            return False
        self._install(fetched_sweeps)
        for name in known.keys() - sweeps.keys() - rest.keys():
            mirror.drop(self.root, name, known[name])
        return True

    def _changed(self, listed: Listing, known: Mapping[str, str]) -> Listing:
        """Return the listed objects that the folder lacks or has in another state."""

        def is_here(name: str, info: dict[str, Any]) -> bool:
            try:
                return (self.root / name).stat().st_size == int(info["Size"])
            except OSError:
                return False

        return {
            name: info
            for name, info in listed.items()
            if known.get(name) != info["ETag"] or not is_here(name, info)
        }

    def _install(self, fetched: Mapping[str, tuple[str, Path]]) -> None:
        """Move fetched files into the mirror, parts before the records of their replacement."""
        for name, (tag, path) in sorted(fetched.items()):
            mirror.install(self.root, name, tag, path)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _make_mirror(self) -> None:
        """Create the mirror if it was deleted, since writes must reach the bucket anyway."""
        if not (self.root.parent / mirror.INDEX).exists():
            mirror.make(self.root, self.address, self.endpoint)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        self._make_mirror()
        mirror.remove_leftovers(self.root)
        with (
            mirror.in_one_sentence(self.root),
            tempfile.TemporaryDirectory(prefix=mirror.FETCHED, dir=self.root.parent) as scratch,
        ):
            yield Path(scratch)
