"""Errors that end an engine; the text of each is one sentence."""

from privcore.errors import ExitCode, PrivsweepError


class EngineError(PrivsweepError):
    """The engine stopped or cannot start; published results are in the store, and another run can continue.

    This is an outage and not a misuse, so it has a separate exit code.
    """

    exit_code = ExitCode.GONE


class SetupError(EngineError):
    """The setup of the engine is wrong; retrying does not help."""

    exit_code = ExitCode.MISUSE


class StoppedError(EngineError):
    """The engine stopped during a run; the text is a clause, and the caller adds how much is stored."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, without its full stop."""
    return (str(error) or repr(error)).splitlines()[0].rstrip(".")
