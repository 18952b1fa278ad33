"""The errors that misuse raises; numerical failure never raises, it is a status of the answer."""

import difflib
from enum import IntEnum


class ExitCode(IntEnum):
    """The numbers that the command `privsweep` ends with; scripts rely on them."""

    DONE = 0
    FAILED = 1
    """Some points failed, or what was asked is not so: a store is not sound, two tables contradict."""
    MISUSE = 2
    UNCOVERED = 3
    """Nothing stored covers the question."""
    LIMIT = 4
    """A limit on time or memory was hit."""
    GONE = 5
    """Ray or Prefect is gone: an outage."""
    INTERRUPTED = 130
    """The number that shells report for a process that Ctrl-C ended."""


class PrivsweepError(Exception):
    """Root of every error this project raises on purpose; its text is one sentence for the user.

    Attributes:
        exit_code: The number that a command ends with if the error ends it.
    """

    exit_code = ExitCode.MISUSE


class DomainError(PrivsweepError, ValueError):
    """A parameter has a value outside its declared domain, or values that contradict one another."""


class LimitError(PrivsweepError):
    """A limit on time or memory kept a question from being answered."""

    exit_code = ExitCode.LIMIT


class UnknownNameError(PrivsweepError, KeyError):
    """A problem, method, field or knob of that name does not exist."""

    def __str__(self) -> str:
        """Return the sentence itself; `KeyError` would print it between quotes."""
        return str(self.args[0]) if self.args else ""


def unknown(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """Return the error for a misspelt name, with the closest known one as a suggestion."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]}?" if close else f" Known: {', '.join(sorted(known))}."
    return UnknownNameError(f"Unknown {kind} {name}.{hint}")
