"""Failures that are too many: a run whose method answers nothing should not look like a success."""

from flows.runs.status import Coverage
from privcore.errors import DomainError

NAMED = 3  # methods in a sentence, at most


def check_share(most: float | None) -> None:
    """Raise `DomainError` unless a share of failed points is between 0 and 1, or not given."""
    if most is not None and not 0 <= most <= 1:
        raise DomainError(f"Expected max_failed in [0, 1], a share of the points, got {most:g}.")


def too_many_failed(now: Coverage, most: float | None) -> str:
    """Return the sentence that says why too many points of a sweep failed, or "".

    Args:
        now: Coverage of the sweep.
        most: Largest share of failed points, 0 to 1; None means that every method must answer at least one
            point of each of its problems if any of them failed.
    """
    if not now.failed:
        return ""
    if most is not None:
        share = now.failed / now.total
        return f"{share:.1%} of the points failed, more than max_failed {most:g}." if share > most else ""
    silent = [f"{method} answered no point of {problem}" for problem, method in now.silent]
    more = f", and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
    return f"{', '.join(silent[:NAMED])}{more}." if silent else ""
