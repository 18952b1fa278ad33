"""Options shared by commands, words that a shell completes, the status line of a computation, and exits.

Names come from the table of stored names, since importing the classes would be too slow for completion.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.printing import note, printable, say
from flows.spec.words import DEFAULT_STORE, method_from
from flows.terminal.lines import BottomLines
from flows.terminal.window import Piece, moves_cursor
from privcore import ExitCode, Method, stored_names

if TYPE_CHECKING:
    from flows.answers.ask import Asked
    from flows.answers.sourced import Sourced
    from storage import Store
    from tasks.engine import Engine as _Engine

Completer = Callable[[str], list[str]]

_SWEEPS = Path(__file__).parents[1] / "sweeps"


def problems(incomplete: str) -> list[str]:
    """Return the names of problems with this beginning."""
    return _beginning(incomplete, stored_names.PROBLEMS)


def methods(incomplete: str) -> list[str]:
    """Return the names of methods with this beginning."""
    return _beginning(incomplete, stored_names.METHODS)


def problems_and_methods(incomplete: str) -> list[str]:
    """Return the names of problems and methods with this beginning."""
    return _beginning(incomplete, (*stored_names.PROBLEMS, *stored_names.METHODS))


def sweeps(incomplete: str) -> list[str]:
    """Return the names of embedded sweeps with this beginning; the shell completes files."""
    return _beginning(incomplete, (path.stem for path in _SWEEPS.glob("*.toml")))


def problems_and_sweeps(incomplete: str) -> list[str]:
    """Return the names of problems and embedded sweeps with this beginning."""
    return sorted(problems(incomplete) + sweeps(incomplete))


def words(*choices: str) -> Completer:
    """Return the completer for an option that takes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete)]

    return complete


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


PATIENCE = 0.3
"""Seconds of waiting before the activity is shown."""

COMPILING = "privsweep: compiling for this processor (some seconds, once after an installation)"


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show an activity on standard error while the block runs; yield a function that names another one.

    Args:
        what: The activity, such as `computing allocation-epsilon`.
    """
    now = [what]
    if not moves_cursor(sys.stderr):
        yield now.append
        return
    announce_compilation()
    began = time.monotonic()

    def lines(_width: int) -> list[list[Piece]]:
        return [[(f"{now[-1]} ... ", ""), (f"{time.monotonic() - began:.0f} s", "dim")]]

    with BottomLines(lines, after=PATIENCE):
        yield now.append


@cache
def announce_compilation() -> None:
    """Say it before the first compilation of this process, and only then."""
    from privcore.numerics.compiled import announce

    announce(lambda: say(COMPILING, file=sys.stderr))


def _folder(context: typer.Context, store: Path) -> Path:
    """Return the folder to work in; for an address, its mirror on this machine, brought up to date."""
    if ":" not in str(store):  # avoids importing the store
        return store
    if context.resilient_parsing:  # a shell completes the next word
        return store
    from storage.place.located import located

    place = located(store)
    place.refresh()
    return place.root


def _existing(context: typer.Context, param: typer.CallbackParam, store: Path) -> Path:
    """Return the folder to work in, as `_folder`; reject a store that was named and does not exist.

    The default store may be missing: then the shipped table answers. With --keep, the command makes a store.
    """
    folder = _folder(context, store)
    source = context.get_parameter_source(str(param.name))
    if context.resilient_parsing or context.params.get("keep") or source is None or source.name == "DEFAULT":
        return folder
    from storage.errors import StoreError
    from storage.place.located import located

    if located(folder).is_empty():
        raise StoreError(
            f"No store found at {shown(folder)}: `privsweep run SWEEP --store ...` makes one; without "
            f"--store, the folder {DEFAULT_STORE} or the shipped table answers."
        )
    return folder


_STORE = {"metavar": "FOLDER", "help": "Folder of the store, or its address s3://bucket/prefix."}
StorePath = Annotated[Path, typer.Option("--store", callback=_existing, **_STORE)]
Keep = Annotated[
    bool,
    typer.Option("--keep", is_eager=True, help="Store the bounds that the command computes."),
]
NewStorePath = Annotated[Path, typer.Option("--store", callback=_folder, **_STORE)]
"""The same option of commands that make a store, or plan to."""


AllowDegraded = Annotated[
    bool,
    typer.Option("--allow-degraded", help="Skip damaged and missing parts, with a warning for each."),
]


def reading(store: Path, *, allow_degraded: bool, missing_ok: bool = True) -> "Store":
    """Open a store for reading.

    Args:
        store: Folder or address of the store.
        allow_degraded: Whether to skip damaged files, with a line on standard error for each.
        missing_ok: Whether the store may be missing.
    """
    from storage import open_store

    return open_store(store, missing_ok=missing_ok, degraded=allow_degraded and _print_damage)


def reading_or_shipped(store: Path, *, allow_degraded: bool) -> "Store":
    """Open a store for reading, or the shipped table with a note, if the store is missing.

    Args:
        store: Folder or address of the store.
        allow_degraded: As in `reading`.
    """
    from storage.place.located import located
    from storage.table.shipped import described, shipped_store, shipped_version

    if located(store).is_empty() and (shipped := shipped_store()) is not None:
        table = described(shipped_version())
        note(f"No store exists at {shown(store)}: using the {table}.")
        return shipped
    return reading(store, allow_degraded=allow_degraded, missing_ok=False)


def _print_damage(sentence: str) -> None:
    note(f"warning: {printable(sentence)}")


def shown(store: Path) -> str:
    """Return the name that the user gave a store."""
    from storage.place.located import located

    return located(store).name


MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Method to use, or 'NAME(option=value,...)'; repeat the option for several methods.",
        autocompletion=methods,
    ),
]


def at_least_zero(limit: float) -> float:
    """Return a limit, or reject a negative limit or NaN."""
    if not limit >= 0.0:
        raise typer.BadParameter(f"Expected a limit of at least 0, got {limit}.")
    return limit


LimitSeconds = Annotated[
    float,
    typer.Option(
        callback=at_least_zero,
        metavar="NUMBER",
        help="Do not start methods whose estimated time exceeds this, in seconds.",
    ),
]
LimitBytes = Annotated[
    float,
    typer.Option(
        callback=at_least_zero,
        metavar="NUMBER",
        help="Do not start methods whose estimated memory exceeds this, in bytes.",
    ),
]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="Also print theorem, assumptions, sampling, row, commit and date."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with all digits.")]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100_000,
        metavar="NUMBER",
        help="Number of worker processes; default: one per core, or all of a cluster.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="WORD",
        help="Engine that computes: ray (in parallel), serial, or auto (ray for more than 10 s of work).",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Ray cluster to compute on, instead of RAY_ADDRESS; `local` starts Ray here.",
    ),
]


def engine_of(engine: str, workers: int | None, ray_address: str | None) -> "_Engine":
    """Return the engine of these options; reject an unknown one, and a cluster for the serial engine."""
    from tasks.engine import Engine as Made  # not needed to print help

    return Made(name=engine, workers=workers, address=ray_address)


def named_methods(names: list[str] | None) -> list[Method] | None:
    """Return the methods of these names, with their options; None, for all methods, without names."""
    return [method_from(name) for name in names] if names else None


def exit_code(status: str) -> ExitCode:
    """Return the exit code for the status of an answer."""
    codes = {
        "ok": ExitCode.DONE,
        "misuse": ExitCode.MISUSE,
        "timeout": ExitCode.LIMIT,
        "out_of_memory": ExitCode.LIMIT,
    }
    return codes.get(status, ExitCode.FAILED)


def finish_all(statuses: Iterable[str]) -> None:
    """Exit with the most severe code of several answers, if any of them failed."""
    codes = {exit_code(status) for status in statuses}
    for code in (ExitCode.MISUSE, ExitCode.FAILED, ExitCode.LIMIT):
        if code in codes:
            raise typer.Exit(code)


def finish(asked: "Asked | Sourced") -> None:
    """Print the reason of a missing answer, and exit with its code."""
    if not asked.ok:
        note(f"{asked.status}: {asked.detail}")
        raise typer.Exit(exit_code(asked.status))
