"""Errors that end an engine, each with a text of one sentence."""

from privcore.errors import ExitCode, PrivsweepError


class EngineError(PrivsweepError):
    """The engine is gone, or cannot begin; what it published is in the store, and a new one can go on.

    That is an outage and no misuse, so it has an exit code of its own.
    """

    exit_code = ExitCode.GONE


class SetupError(EngineError):
    """The engine cannot work as it is set up; to wait and to ask again does not help."""

    exit_code = ExitCode.MISUSE


class StoppedError(EngineError):
    """The engine stopped in the middle; the text is a clause, to be followed by how much is stored."""


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, without its full stop."""
    return (str(error) or repr(error)).splitlines()[0].rstrip(".")
