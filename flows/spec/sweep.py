"""A sweep: grids and methods with a name, read from TOML; errors are reported before anything starts.

One file, since one reader checks the whole content of a sweep file.
"""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.spec.condition import condition
from flows.spec.fields import contradiction, fields_of, missing
from flows.spec.grid import Axis, Grid
from flows.spec.toml import Reader, SweepError, shown
from privcore.errors import PrivsweepError, unknown
from privcore.method import Method
from privcore.parameter import Choice, Integer, Parameter, Text
from privcore.problem import Problem
from privcore.registry import answering, find, find_problem
from tasks.limits import POINT_BYTES, POINT_SECONDS, Limits

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
NAME_DOMAIN = "1 to 64 lower-case letters, digits, - and _, the first a letter or digit"
LONGEST_TITLE = 200  # characters
LARGEST_FILE = 1_000_000  # bytes; a grid is a rule, not a list of its points
_EMBEDDED = Path(__file__).parents[1] / "sweeps"
_STORED_NAMES = {f"allocation-figure{n}": f"figure{n}" for n in range(1, 10)}
"""Names of embedded sweeps in stores, if their files have other names: a name is part of a digest."""
RULES = {"linear": "first, last, count", "geometric": "first, last, count", "range": "first, last, step"}


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


def display_name(reference: str) -> str:
    r"""Return the name of a sweep for displays, whether or not the sweep can be loaded.

    Example:
        >>> display_name("mine/first.toml"), display_name('title = "One"\nname = "first"\n')
        ('first', 'first')
    """
    if "\n" not in reference:
        return Path(reference).stem
    named = re.search(rf'^\s*name\s*=\s*"({NAME.pattern})"', reference, re.MULTILINE)
    return named[1] if named else "sweep"


def parse(content: bytes, source: str) -> Sweep:
    """Return the sweep that a TOML text describes.

    Args:
        content: The text, UTF-8.
        source: Its name in messages.

    Raises:
        SweepError: The sweep is invalid.
    """
    try:
        text = content.decode()
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SweepError(f"{source}: Expected TOML, got: {error}.") from None
    except (ValueError, RecursionError):
        raise SweepError(f"{source}: Expected TOML in UTF-8 without huge numbers or deep nesting.") from None
    return read(table, Reader(source, text))


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
    limits = {key: _check(known[key], value, reader, f"limits.{key}") for key, value in given.items()}
    read_grids = tuple(_grid(g, Reader(reader.source, reader.text, i)) for i, g in enumerate(grids, start=1))
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


def _grid(given: Any, reader: Reader) -> Grid:
    """Return one grid of a sweep."""
    table = reader.known(given, ("problem", "methods", "product", "zip", "where"), "grid")
    problem = _named(table.get("problem"), find_problem, reader, "problem")
    methods = _methods(table.get("methods"), problem, reader)
    product = _axes(table.get("product", {}), problem, reader, "product")
    together = _axes(table.get("zip", {}), problem, reader, "zip")
    for name in together:
        if name in product:
            reader.refuse(f"zip.{name}", f"Expected {name} once, got it in product too.")
    sizes = {name: axis.size for name, axis in together.items()}
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{size} of {name}" for name, size in sizes.items())
        reader.refuse("zip", f"Expected the same number of values of each field, got {lengths}.")
    if lacking := missing(problem, {*product, *together}):
        reader.refuse("product", f"Expected values of {', '.join(lacking)} for {problem.name}.")
    if why := contradiction(problem, {*product, *together}):
        reader.refuse("product", why)
    where = table.get("where")
    try:
        if where is not None and not isinstance(where, str):
            reader.refuse("where", f"Expected a condition in quotes, got {shown(where)}.")
        excluded = condition(where, fields_of(problem)) if where is not None else None
    except PrivsweepError as error:
        if isinstance(error, SweepError):
            raise
        reader.refuse("where", str(error))
    line = reader.line("problem")
    origin = f"{reader.source}, {f'line {line}, ' if line else ''}grid {reader.grid}"
    return Grid(
        problem=problem, methods=methods, product=product, zip=together, where=excluded, origin=origin
    )


def _named(name: Any, look_up: Any, reader: Reader, key: str) -> Any:
    """Return the class of this name in the registry."""
    if not isinstance(name, str):
        reader.refuse(key, f"Expected a name in quotes, got {shown(name)}.")
    try:
        return look_up(name)
    except PrivsweepError as error:
        reader.refuse(key, str(error))


def _methods(given: Any, problem: type[Problem], reader: Reader) -> tuple[Method, ...]:
    """Return the methods of a grid: names, or tables of a name with options."""
    if not isinstance(given, list) or not given:
        reader.refuse("methods", f"Expected a list of method names, got {shown(given)}.")
    methods: list[Method] = []
    for entry in given:
        table = entry if isinstance(entry, dict) else {"name": entry}
        kind = _named(table.get("name"), find, reader, "methods")
        if problem not in kind.problems:
            names = ", ".join(m.name for m in answering(problem))
            reader.refuse("methods", f"{kind.name} does not answer {problem.name}; these do: {names}.")
        try:
            method = kind.from_knobs({key: value for key, value in table.items() if key != "name"})
        except PrivsweepError as error:
            reader.refuse("methods", str(error))
        if method in methods:
            reader.refuse("methods", f"Expected {kind.name} once with the same options, got it twice.")
        methods.append(method)
    return tuple(methods)


def _axes(given: Any, problem: type[Problem], reader: Reader, key: str) -> dict[str, Axis]:
    """Return the axes of a `product` or `zip` table."""
    axes, fields = {}, fields_of(problem)
    for name, values in reader.known(given, fields, key).items():
        axes[name] = _axis(fields[name], values, reader, f"{key}.{name}")
    return axes


def _axis(parameter: Parameter, given: Any, reader: Reader, key: str) -> Axis:
    """Return an axis: a value, a list of values, or a rule that generates them."""
    if not isinstance(given, dict):
        values = given if isinstance(given, list) else [given]
        if not values:
            reader.refuse(key, "Expected at least one value, got an empty list.")
        return Axis(
            parameter=parameter, rule="list", numbers=tuple(_check(parameter, v, reader, key) for v in values)
        )
    rule, numbers = next(iter(reader.known(given, RULES, key).items()), ("", None))
    if isinstance(parameter, Choice | Text) or len(given) != 1:
        reader.refuse(key, f"Expected values, a list, or one of {', '.join(RULES)}, got {shown(given)}.")
    real = isinstance(numbers, list) and all(type(x) in (int, float) for x in numbers)
    if (
        not isinstance(numbers, list)
        or not real
        or len(numbers) != 3
        or not all(abs(x) <= 1e308 for x in numbers)
    ):
        reader.refuse(key, f"Expected {rule} = [{RULES[rule]}], three finite numbers, got {shown(numbers)}.")
    first, last = (_check(parameter, x, reader, key) for x in numbers[:2])
    third = numbers[2]
    if first >= last:
        reader.refuse(key, f"Expected the first value below the last, got {first} and {last}.")
    if rule == "range" and (third <= 0 or (isinstance(parameter, Integer) and third != int(third))):
        kind = "whole number" if isinstance(parameter, Integer) else "number"
        reader.refuse(key, f"Expected a step that is a {kind} > 0, got {third}.")
    if rule != "range" and (third != int(third) or third < 2):
        reader.refuse(key, f"Expected a count of at least 2, got {third}.")
    if rule == "geometric" and first <= 0:
        reader.refuse(key, f"Expected a geometric axis above 0, got {first}.")
    return Axis(
        parameter=parameter, rule=rule, numbers=(first, last, int(third) if rule != "range" else third)
    )


def _check(parameter: Parameter, value: Any, reader: Reader, key: str) -> Any:
    """Return a value in its domain."""
    try:
        return parameter.check(value)
    except PrivsweepError as error:
        reader.refuse(key, str(error))
    except ValueError:  # a number of thousands of digits cannot even be shown
        reader.refuse(
            key, f"Expected {parameter.name} in {parameter.domain}, got a number with too many digits."
        )
