"""Runs of several phases from a TOML file, or from one line of text."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flows.answers.samplers import with_sizes
from flows.spec.depth import parsed
from privcore import DomainError, PrivsweepError
from privcore.errors import unknown
from privcore.training import PHASES, phase_named, written

KEYS = ("adjacency", "delta", "examples", "phase")
LARGEST_FILE = 10**6
"""Largest size of a file in bytes."""


def run_question(text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the problem about a run: phases, adjacency and delta.

    Args:
        text: Path of a TOML file, or the phases themselves, such as `none(sigma=1,steps=10)`.
        options: Values of `adjacency`, `delta` and `examples` from the command line, which replace those of
            the file; None if they were not given.

    Raises:
        PrivsweepError: The file cannot be read, a key is unknown or missing, or a phase is impossible.
    """
    given = {name: value for name, value in options.items() if value is not None}
    content = {"phases": text} if "(" in text else _content(Path(text))
    fields = {**content, **given}
    if "adjacency" not in fields:
        raise DomainError(
            "Expected adjacency (add-remove, zero-out or replace-one), in the file of the run or as "
            "--adjacency."
        )
    size = fields.pop("examples", None)
    if "phase" in fields:
        listed = enumerate(fields.pop("phase"), 1)
        fields["phases"] = "; ".join(_phase(number, phase, size) for number, phase in listed)
    return fields


def refuse_options(options: Iterable[str]) -> None:
    """Raise `DomainError` if an option was given that belongs to the phases of a run."""
    for name in options:
        if name not in ("adjacency", "delta", "examples"):
            option = name.replace("_", "-")
            raise DomainError(f"Expected {name} in the phases of the run, got --{option} with --run.")


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, whose phases are a list of tables."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise DomainError(f"Expected a file of at most {LARGEST_FILE} bytes, got {path}.")
        content = parsed(raw)
    except OSError as error:
        raise DomainError(f"Cannot read the run {path}: {error.strerror or error}.") from None
    except UnicodeError:
        raise DomainError(f"Expected TOML in UTF-8, but {path} is not UTF-8.") from None
    except ValueError as error:
        raise DomainError(f"Cannot read the run {path}: {str(error)[:120].rstrip('.')}.") from None
    for name in content:
        if name not in KEYS:
            raise unknown("key of a run", name, list(KEYS))
    phases = content.get("phase")
    if not isinstance(phases, list) or not phases or not all(isinstance(each, dict) for each in phases):
        raise DomainError(f"Expected at least one table [[phase]] in {path}.")
    return content


def _phase(number: int, phase: Mapping[str, Any], size: Any) -> str:
    """Return the text of a phase; examples and a batch size determine the steps of an epoch and the rate.

    Args:
        number: Number of the phase, from 1, for messages.
        phase: Its keys.
        size: Size of the data set, if the file states it for all phases.
    """
    fields = dict(phase)
    sampling = fields.pop("sampling", None)
    if not isinstance(sampling, str):
        raise DomainError(f'Expected the sampling of phase {number}, such as sampling = "poisson".')
    try:
        if sampling not in PHASES:
            raise unknown("sampling", sampling, list(PHASES))
        parameters = PHASES[sampling].parameters
        batch, size = fields.pop("batch_size", None), fields.pop("examples", size)
        fields, _ = with_sizes(sampling, parameters, fields, size=size, batch=batch)
        return written((phase_named(sampling, fields),))
    except PrivsweepError as error:
        raise type(error)(f"Phase {number}: {error}") from None
