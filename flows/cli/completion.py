"""Words that a shell can complete: problems, methods and sweeps.

Names come from the table of stored names, since importing the classes would be too slow for completion.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from privcore import stored_names

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
