"""The errors that misuse raises; numerical failure never raises, it is a status of the answer."""


class PrivsweepError(Exception):
    """Root of every error this project raises on purpose; its text is one sentence for the user."""


class DomainError(PrivsweepError, ValueError):
    """A parameter has a value outside its declared domain, or values that contradict one another."""


class UnknownNameError(PrivsweepError, KeyError):
    """A problem, method, field or knob of that name does not exist."""

    def __str__(self) -> str:
        """Return the sentence itself; `KeyError` would print it between quotes."""
        return str(self.args[0]) if self.args else ""


def unknown(kind: str, name: str, known: list[str]) -> UnknownNameError:
    """Return the error for a misspelt name, with the closest known one as a suggestion."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]}?" if close else f" Known: {', '.join(sorted(known))}."
    return UnknownNameError(f"Unknown {kind} {name}.{hint}")
