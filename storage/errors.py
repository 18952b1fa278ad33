"""Errors of a store, each with a text of one sentence."""

from privcore.errors import PrivsweepError


class StoreError(PrivsweepError):
    """The store is missing, of a newer version, or has a file that is damaged or does not belong there."""


class DamagedError(StoreError):
    """A file of the store is not what its name or its folder says; `repair` moves it away."""


class DegradedWarning(UserWarning):
    """A file of the store was left out, so that what is read may lack rows."""


class QueryError(PrivsweepError):
    """The SQL is not one valid SELECT."""


def reason(error: Exception) -> str:
    """Return the system's own words for a refusal, without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
