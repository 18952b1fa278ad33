"""Errors raised on misuse; a numerical failure raises nothing and becomes a status of the answer."""

import difflib
from collections.abc import Sequence
from enum import IntEnum

LONGEST_LIST = 800
"""Most characters of a list of known names in an error."""


class ExitCode(IntEnum):
    """Exit codes of the command `privsweep`; scripts rely on them."""

    DONE = 0
    FAILED = 1
    """A check failed: a store is damaged, or two tables contradict each other. A crash has this code, too."""
    MISUSE = 2
    UNCOVERED = 3
    """The store has no answer that covers the question."""
    LIMIT = 4
    """A limit on time or memory was reached."""
    GONE = 5
    """Ray or Prefect became unreachable, or a run did not store all points."""
    UNANSWERED = 6
    """A run stored all points, but some have no answer. No crash of Python or Ray has this code."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C: the code that shells report for it."""


class PrivsweepError(Exception):
    """Base of every error that this project raises on purpose; its text is one sentence for the user.

    Attributes:
        exit_code: Exit code of a command that ends with this error.
    """

    exit_code = ExitCode.MISUSE


class DomainError(PrivsweepError, ValueError):
    """A parameter is outside its declared domain, or the values of several parameters contradict."""


class ChoiceError(DomainError):
    """A choice is missing or does not exist; the text ends with one line for each choice."""

    def __init__(self, sentence: str, choices: Sequence[str]) -> None:
        super().__init__(sentence, choices)

    def __str__(self) -> str:
        """Return the sentence and the choices, in lines."""
        sentence, choices = self.args
        return "\n  ".join([sentence, *choices])


class LimitError(PrivsweepError):
    """A limit on time or memory was reached before the question was answered."""

    exit_code = ExitCode.LIMIT


class UnknownNameError(PrivsweepError, KeyError):
    """A problem, method, field or option of that name does not exist."""

    def __str__(self) -> str:
        """Return the sentence itself; `KeyError` would print it in quotes."""
        return str(self.args[0]) if self.args else ""


def interrupted(error: BaseException, outer: BaseException | None = None) -> bool:
    """Return whether an interrupt is the cause of an error: compiled code raises `SystemError` after Ctrl-C.

    Args:
        error: The error.
        outer: The error that was handled before, whose own causes do not count.
    """
    seen: set[int] = {id(outer)}
    chain: list[BaseException | None] = [error]
    while chain:
        link = chain.pop()
        if link is None or id(link) in seen:
            continue
        if isinstance(link, KeyboardInterrupt):
            return True
        seen.add(id(link))
        chain += [link.__cause__, link.__context__]
    return False


def unknown(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """Return the error for a misspelt name, with the closest known name or the first known names."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"Did you mean {close[0]}?" if close else f"Known: {_listed(sorted(set(known)))}."
    shown = name if name.isprintable() else ascii(name)
    return UnknownNameError(f"Unknown {kind} {shown[:100]}. {hint}")


def _listed(names: list[str]) -> str:
    """Return the names as a list of at most a few lines, with the number of those left out."""
    shown = names
    while len(", ".join(shown)) > LONGEST_LIST:
        shown = shown[:-1]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
