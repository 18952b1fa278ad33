"""A store in a bucket, s3://bucket/prefix, behind the folder that mirrors it.

The bucket is the truth. Whoever reads first makes the folder equal to it (`storage.located.refresh`);
whoever writes changes the bucket first (`storage.disk`). So the rest of the package knows folders only.
Objects appear whole and are listed at once, which is what renaming does on a disk, and a new one is put on
the condition that there is none of its name.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage import mirror
from storage.errors import StoreError
from storage.mirror import MARK, RECORDS, SWEEPS, is_mirrored
from storage.server import asking, content_of, put_new, refused

_AT_ONCE = 64  # objects that are fetched together,
_BYTES_AT_ONCE = 64e6  # as long as they are not larger than this together, since memory holds them
_TRIES = 10  # how often everything is listed again because objects vanished meanwhile

Objects = dict[str, dict[str, Any]]
"""What a server says of objects, by their names relative to the store."""


@dataclass(frozen=True)
class Bucket:
    """A store in a bucket.

    Attributes:
        address: Such as `s3://bucket/prefix`.
        endpoint: Address of the server, "" for the one of AWS.
        folder: The mirror; there is none while there is no store.
    """

    address: str
    endpoint: str
    folder: Path

    def put(self, path: Path, content: bytes) -> None:
        """Write the object of a file, then the file, as it comes back.

        An object of that name stays if it has this content; else it is replaced.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        name = self._name(path)
        with self._asking("write", name) as server:
            key = self._key(name)
            if not put_new(server, key, content) and content_of(server, key) != content:
                server.pipe_file(key, content)
        self.take(path)

    def take(self, path: Path) -> bool:
        """Fetch the object of a file; return whether there is one.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        name = self._name(path)
        found = self._first(name)
        if found is None or found["Key"] != self._key(name).partition("/")[2]:
            return False
        with self._scratch() as scratch:
            fetched = self._fetch({name: found}, scratch)
            self._install(fetched)
        return bool(fetched)

    def copy(self, old: Path, new: Path) -> None:
        """Copy the object of a file to another name, if it is there; the folder does not change.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        with self._asking("write", self._name(new)) as server, suppress(FileNotFoundError):
            server.cp_file(self._key(self._name(old)), self._key(self._name(new)))

    def delete(self, path: Path) -> None:
        """Delete the object of a file, then the file; one that is gone already is no error.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        name = self._name(path)
        if not is_mirrored(name):
            return
        with self._asking("delete", name) as server:
            server.rm_file(self._key(name))
        mirror.discard(self.folder, name)

    def foreign(self) -> str:
        """Return the key of some object below the address, or "" where there is none.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        found = self._first("")
        return str(found["Key"]) if found else ""

    def pull(self) -> None:
        """Make the folder equal to the bucket.

        Raises:
            StoreError: The server refused, or cannot be reached.
        """
        mirror.remove_strays(self.folder)
        for _ in range(_TRIES):
            with self._scratch() as scratch:
                if self._pulled(scratch):
                    return
        raise StoreError(f"Cannot read {self.address}: it changes too quickly; try again.")

    def _pulled(self, scratch: Path) -> bool:
        """Make the folder equal to the bucket; return False where one listing may not show the whole.

        Sweeps are listed first and installed last, since a sweep is written after its parts. Where the record
        of a replacement is new, parts were replaced meanwhile, and the pages of one listing may show neither
        the old ones nor the new one.
        """
        known = mirror.tags(self.folder)
        if not self.take(self.folder / MARK):  # what is there is no store, and may be very large
            mirror.clear(self.folder, known)
            return True
        sweeps = self._listed(SWEEPS)
        wanted_sweeps = self._changed(sweeps, known)
        fetched_sweeps = self._fetch(wanted_sweeps, scratch)
        rest = {name: info for name, info in self._listed("").items() if not name.startswith(SWEEPS)}
        wanted = self._changed(rest, known)
        fetched = self._fetch(wanted, scratch)
        self._install(fetched)
        vanished = wanted.keys() - fetched.keys() or wanted_sweeps.keys() - fetched_sweeps.keys()
        if vanished or any(name.startswith(RECORDS) and name not in known for name in wanted):
            return False
        self._install(fetched_sweeps)
        for name in known.keys() - sweeps.keys() - rest.keys():
            mirror.drop(self.folder, name, known[name])
        return True

    def _first(self, name: str) -> dict[str, Any] | None:
        """Return what the server says of the first object whose name begins so."""
        bucket, _, prefix = self._key(name).partition("/")
        if not name and prefix:
            prefix += "/"
        with self._asking("read", name) as server:
            found = server.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=2)
            if "Name" not in found:  # every list has it; a page for people does not
                raise ValueError("what answers is no S3 server")
        # Consoles mark a folder by an empty object that has its name and a slash.
        objects = (one for one in found.get("Contents", []) if not (one["Key"] == prefix and not name))
        return next(objects, None)

    def _listed(self, prefix: str) -> Objects:
        """Return the objects of the store below a prefix; what can be the name of no file is left out."""
        store = self._key("")
        with self._asking("read") as server:
            try:
                found = server.find(self._key(prefix), detail=True)
            except FileNotFoundError:
                return {}
        names = {key[len(store) + 1 :]: info for key, info in found.items()}
        folders = {above.as_posix() for name in names if is_mirrored(name) for above in Path(name).parents}
        return {name: info for name, info in names.items() if is_mirrored(name) and name not in folders}

    def _changed(self, listed: Objects, known: Mapping[str, str]) -> Objects:
        """Return those of which the folder has no copy, or a copy of another state."""

        def is_here(name: str, info: dict[str, Any]) -> bool:
            try:
                return (self.folder / name).stat().st_size == int(info["Size"])
            except OSError:
                return False

        return {
            name: info
            for name, info in listed.items()
            if known.get(name) != info["ETag"] or not is_here(name, info)
        }

    def _fetch(self, wanted: Objects, scratch: Path) -> dict[str, tuple[str, Path]]:
        """Return a tag and a fetched file for each object; those that vanished are left out."""
        fetched = {}
        for some in _portions(wanted):
            with self._asking("read") as server:
                keys = [self._key(name) for name in some]
                contents = server.cat_ranges(keys, None, None, on_error="return")
            for name, content in zip(some, contents, strict=True):
                if isinstance(content, FileNotFoundError):
                    continue
                if isinstance(content, BaseException):
                    raise refused("read", self._place(name), content)
                path = scratch / hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
                path.write_bytes(content)
                changed = wanted[name]["LastModified"].timestamp()
                os.utime(path, (changed, changed))
                fetched[name] = (wanted[name]["ETag"], path)
        return fetched

    def _install(self, fetched: Mapping[str, tuple[str, Path]]) -> None:
        """Put fetched files in their places, parts before the records of what they replace."""
        for name, (tag, path) in sorted(fetched.items()):
            mirror.install(self.folder, name, tag, path)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _key(self, name: str) -> str:
        return f"{self.address.removeprefix('s3://')}/{name}".rstrip("/")

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        mirror.remove_leftovers(self.folder)
        with (
            mirror.in_one_sentence(self.folder),
            tempfile.TemporaryDirectory(prefix=mirror.FETCHED, dir=self.folder.parent) as scratch,
        ):
            yield Path(scratch)

    def _asking(self, action: str, name: str = "") -> AbstractContextManager[Any]:
        """Return the server; what goes wrong there becomes one sentence."""
        return asking(self.endpoint, action, self._place(name))

    def _place(self, name: str) -> str:
        return f"{self.address}/{name}".rstrip("/")


def _portions(wanted: Objects) -> Iterator[list[str]]:
    """Yield the names of objects that are fetched together."""
    some: list[str] = []
    size = 0
    for name, info in wanted.items():
        if some and (len(some) == _AT_ONCE or size + info["Size"] > _BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(name)
        size += info["Size"]
    if some:
        yield some
