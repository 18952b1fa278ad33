"""The objects of a store in a bucket, named relative to the address of the store."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.mirror import is_mirrored
from storage.server import asking, content_of, longest, put_new, refused

_MOST_OBJECTS = 1_000_000
_LARGEST = 2**46  # bytes of an object; S3 allows less
_AT_ONCE = 64  # most objects in one fetch
_BYTES_AT_ONCE = 64e6  # most bytes in one fetch, since memory holds them

Listing = dict[str, dict[str, Any]]
"""Properties of listed objects by name."""


@dataclass(frozen=True)
class Objects:
    """The objects below an address; every method raises `StoreError` if the server refuses.

    Attributes:
        address: Address of the store, for example `s3://bucket/prefix`.
        endpoint: Address of the server, or "" for the server of AWS.
    """

    address: str
    endpoint: str

    def put(self, name: str, content: bytes) -> None:
        """Write an object; an existing object of the same content is kept, and otherwise replaced."""
        with self._asking("write", name) as server:
            key = self._key(name)
            if not put_new(server, key, content) and content_of(server, key) != content:
                server.pipe_file(key, content, timeout=longest(len(content)))

    def copy(self, old: str, new: str) -> None:
        """Copy an object to another name, if it exists."""
        with self._asking("write", new) as server, suppress(FileNotFoundError):
            server.cp_file(self._key(old), self._key(new), timeout=longest())

    def delete(self, name: str) -> None:
        """Delete an object if it exists."""
        with self._asking("delete", name) as server:
            server.rm_file(self._key(name), timeout=longest())

    def first(self, name: str = "") -> dict[str, Any] | None:
        """Return the properties of the first object whose name begins with `name`, or None."""
        bucket, _, prefix = self._key(name).partition("/")
        if not name and prefix:
            prefix += "/"
        with self._asking("read", name) as server:
            found = _page(server, Bucket=bucket, Prefix=prefix, MaxKeys=2)
        # Web consoles mark a folder by an empty object whose name is that of the folder and a slash.
        objects = (one for one in found.get("Contents", []) if not (one["Key"] == prefix and not name))
        return next(objects, None)

    def named(self, name: str) -> Listing:
        """Return a listing of the object of this name, empty if it does not exist."""
        found = self.first(name)
        is_it = found is not None and found["Key"] == self._key(name).partition("/")[2]
        return {name: found} if found and is_it else {}

    def listed(self, prefix: str) -> Listing:
        """Return the objects below a prefix, without names that cannot be file names."""
        bucket, _, store = f"{self._key('')}/".partition("/")
        below = store + (f"{prefix.rstrip('/')}/" if prefix else "")
        names: Listing = {}
        with self._asking("read") as server:
            more: dict[str, str] = {}
            while True:
                page = _page(server, Bucket=bucket, Prefix=below, **more)
                listed = (one for one in page.get("Contents", []) if one["Key"].startswith(below))
                found = {one["Key"].removeprefix(store): one for one in listed}
                if more and names.keys() >= found.keys():  # also without any key
                    raise ValueError("its listing does not end")
                names |= found
                if len(names) > _MOST_OBJECTS:
                    raise ValueError(f"it has more than {_MOST_OBJECTS} objects")
                if not page.get("IsTruncated"):
                    break
                more = {"ContinuationToken": page["NextContinuationToken"]}
        folders = {above.as_posix() for name in names if is_mirrored(name) for above in Path(name).parents}
        return {name: info for name, info in names.items() if is_mirrored(name) and name not in folders}

    def fetch(self, wanted: Listing, scratch: Path) -> dict[str, tuple[str, Path]]:
        """Return a tag and a fetched file for each object that still exists."""
        fetched = {}
        for some in _portions(wanted):
            with self._asking("read") as server:
                keys = [self._key(name) for name in some]
                limit = longest(sum(wanted[name]["Size"] for name in some))
                contents = server.cat_ranges(keys, None, None, on_error="return", timeout=limit)
            for name, content in zip(some, contents, strict=True):
                if isinstance(content, FileNotFoundError):
                    continue
                if isinstance(content, BaseException):
                    raise refused("read", self.place(name), content)
                path = scratch / hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
                path.write_bytes(content)
                changed = wanted[name]["LastModified"].timestamp()
                os.utime(path, (changed, changed))
                fetched[name] = (wanted[name]["ETag"], path)
        return fetched

    def place(self, name: str) -> str:
        """Return the address of an object."""
        return f"{self.address}/{name}".rstrip("/")

    def _key(self, name: str) -> str:
        return self.place(name).removeprefix("s3://")

    def _asking(self, action: str, name: str = "") -> AbstractContextManager[Any]:
        """Return a context that yields the server and turns its errors into one sentence."""
        return asking(self.endpoint, action, self.place(name))


def _page(server: Any, **asked: Any) -> dict[str, Any]:
    """Return one page of a listing."""
    found: dict[str, Any] = server.call_s3("list_objects_v2", **asked, timeout=longest())
    # Every S3 listing has these keys; an HTML page has not.
    whole = "Name" in found and (not found.get("IsTruncated") or "NextContinuationToken" in found)
    if not whole or not all(map(_is_object, found.get("Contents", []))):
        raise ValueError("the endpoint is not an S3 server")
    return found


def _is_object(found: dict[str, Any]) -> bool:
    """Return whether an entry of a listing has the properties of an object."""
    return {"Key", "ETag", "LastModified"} <= found.keys() and 0 <= found.get("Size", -1) < _LARGEST


def _portions(wanted: Listing) -> Iterator[list[str]]:
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
