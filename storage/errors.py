"""Errors of a store; the text of each is one sentence."""

from privcore.errors import PrivsweepError


class StoreError(PrivsweepError):
    """The store is missing or of a newer version, or a file in it is damaged or not part of a store."""


class DamagedError(StoreError):
    """A file of the store contradicts its name or its folder; `repair` moves it to the quarantine."""


class ContradictionError(StoreError):
    """Two stored brackets contradict one another.

    Attributes:
        said: The contradiction as a predicate, without a remedy.
    """

    def __init__(self, said: str, remedy: str) -> None:
        self.said = said
        super().__init__(f"The store {said}; {remedy}.")


class DegradedWarning(UserWarning):
    """A file of the store was left out, so results may lack rows."""


class QueryError(PrivsweepError):
    """The SQL is not one valid SELECT."""


def reason(error: Exception) -> str:
    """Return the operating system's text of an error, without number and path."""
    if "embedded null" in str(error):  # later releases of Python name the function, too
        return "embedded null byte"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
