"""A sweep: grids and methods with a name, read from TOML; errors are reported before anything starts."""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.spec.depth import parsed
from flows.spec.grid import Grid
from flows.spec.read_grid import checked, read_grid
from flows.spec.toml import Reader, SweepError, shown
from privcore.errors import unknown
from privcore.parameter import Text
from tasks.guard import POINT_BYTES, POINT_SECONDS, Limits

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
NAME_DOMAIN = "1 to 64 lower-case letters, digits, - and _, the first a letter or digit"
LONGEST_TITLE = 200  # characters
LARGEST_FILE = 1_000_000  # bytes; a grid is a rule, not a list of its points
_EMBEDDED = Path(__file__).parents[1] / "sweeps"
_STORED_NAMES = {f"allocation-figure{n}": f"figure{n}" for n in range(1, 10)}
"""Names of embedded sweeps in stores, if their files have other names: a name is part of a digest."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A named set of grids with limits for each point.

    Attributes:
        name: Lower-case letters, digits, - and _.
        title: One line for people.
        grids: Grids of problems, with their methods.
        limits: Limits of time and memory for each point.
        spec: The file's content in JSON types, from which the sweep can be read again.
    """

    name: str
    title: str
    grids: tuple[Grid, ...]
    limits: Limits
    spec: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Hash of the content, 32 hexadecimal digits: spaces and comments do not matter."""
        text = json.dumps(self.spec, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def embedded() -> dict[str, Path]:
    """Return the files of the embedded sweeps by their names; a stored name refers to its file, too."""
    files = {path.stem: path for path in sorted(_EMBEDDED.glob("*.toml"))}
    return files | {stored: files[name] for name, stored in _STORED_NAMES.items()}


def embedded_names() -> list[str]:
    """Return the names of the embedded sweeps, as those of their files."""
    return [name for name, file in embedded().items() if name == file.stem]


def load(reference: str | Path) -> Sweep:
    """Return the sweep in a file or in a text, or the embedded sweep of that name.

    Args:
        reference: Path of a TOML file, a name such as `quickstart`, or TOML of several lines.

    Raises:
        SweepError: The sweep is missing or invalid.
    """
    source = str(reference)
    if "\n" in source:
        return parse(source.encode(), "the text of the sweep")
    try:
        path = Path(source)
        if NAME.fullmatch(source) and not path.is_file():
            known = embedded()
            if source not in known:
                raise SweepError(str(unknown("sweep", source, embedded_names())))
            content = known[source].read_bytes()
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)  # the size of a device says nothing
            if len(content) > LARGEST_FILE:
                raise SweepError(f"{source}: Expected a file of at most {LARGEST_FILE} bytes.")
    except OSError as error:
        raise SweepError(f"{source}: Expected a sweep file, got: {error.strerror}.") from None
    except ValueError:
        raise SweepError(f"Expected the path of a sweep file, got {source!r}.") from None
    return parse(content, source)


def display_name(reference: str, folder: Path = Path()) -> str:
    r"""Return the name of a sweep for displays, whether or not the sweep can be loaded.

    Args:
        reference: As for `load`.
        folder: The folder in which a relative path begins.

    Example:
        >>> display_name("mine/first.toml"), display_name('title = "One"\nname = "first"\n')
        ('first', 'first')
    """
    text, otherwise = reference, "sweep"
    if "\n" not in reference:
        otherwise = Path(reference).stem
        with suppress(OSError, ValueError), (folder / reference).open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE)
    named = re.search(rf"""^\s*name\s*=\s*["']({NAME.pattern})["']""", text, re.MULTILINE)
    return named[1] if named else otherwise


def parse(content: bytes, source: str) -> Sweep:
    """Return the sweep that a TOML text describes.

    Args:
        content: The text, UTF-8.
        source: Its name in messages.

    Raises:
        SweepError: The sweep is invalid.
    """
    try:
        table = parsed(content)
    except tomllib.TOMLDecodeError as error:
        raise SweepError(f"{source}: Expected TOML, got: {error}.") from None
    except ValueError:
        raise SweepError(f"{source}: Expected TOML in UTF-8 without huge numbers or deep nesting.") from None
    return read(table, Reader(source, content.decode()))


def from_spec(spec: Mapping[str, Any], source: str) -> Sweep:
    """Return the sweep of a stored spec, such as a manifest's; raises `SweepError` like `parse`."""
    return read(dict(spec), Reader(source, ""))


def read(table: dict[str, Any], reader: Reader) -> Sweep:
    """Return the sweep of a parsed file."""
    reader.known(table, ("name", "title", "grid", "limits"))
    name = table.get("name", "")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        reader.refuse("name", f"Expected {NAME_DOMAIN}, got {shown(name)}.")
    title = table.get("title", "")
    if not isinstance(title, str) or len(title) > LONGEST_TITLE or not title.isprintable():
        expected = f"Expected one line of at most {LONGEST_TITLE} printable characters"
        reader.refuse("title", f"{expected}, got {shown(title)}.")
    grids = table.get("grid")
    if not isinstance(grids, list) or not grids:
        reader.refuse("grid", "Expected at least one [[grid]].")
    known = {parameter.name: parameter for parameter in (POINT_SECONDS, POINT_BYTES)}
    given = reader.known(table.get("limits", {}), known, "limits")
    limits = {key: checked(known[key], value, reader, f"limits.{key}") for key, value in given.items()}
    read_grids = tuple(
        read_grid(g, Reader(reader.source, reader.text, i)) for i, g in enumerate(grids, start=1)
    )
    return Sweep(
        name=name, title=title, grids=read_grids, limits=Limits(**limits), spec=_settled(table, read_grids)
    )


def _settled(table: Mapping[str, Any], grids: Sequence[Grid]) -> dict[str, Any]:
    """Return a spec in strict JSON types, with canonical texts, independent of the folder and of the time."""
    settled = []
    for written, grid in zip(table["grid"], grids, strict=True):
        texts = {"product": dict(written.get("product", {})), "zip": dict(written.get("zip", {}))}
        for key, axes in (("product", grid.product), ("zip", grid.zip)):
            texts[key] |= {
                name: list(axis.numbers) for name, axis in axes.items() if isinstance(axis.parameter, Text)
            }
        settled.append(dict(written) | {key: axes for key, axes in texts.items() if axes})
    return {key: _strict(value) for key, value in (dict(table) | {"grid": settled}).items()}


def _strict(value: Any) -> Any:
    """Return TOML content without infinities, which JSON lacks; fields accept the word inf instead."""
    if isinstance(value, Mapping):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_strict(inner) for inner in value]
    return "inf" if value == math.inf else value
