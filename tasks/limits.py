"""Limits of one point, and the check of its own estimate against them."""

from dataclasses import dataclass

from privcore.answer import Answer, Status
from privcore.errors import PrivsweepError
from privcore.method import Cost
from privcore.parameter import Real
from privcore.point import Point

POINT_SECONDS = Real(
    name="point_seconds",
    symbol="",
    unit="s",
    lower=0.0,
    lower_open=True,
    upper=1e7,
    typical=(300.0,),
    meaning="Wall time that one point may take",
)
POINT_BYTES = Real(
    name="point_bytes",
    symbol="",
    unit="bytes",
    lower=1e6,
    upper=1e15,
    typical=(2e9,),
    meaning="Memory that one point may take in addition to the memory of its process",
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one point: seconds of wall time, and bytes in addition to the memory of its process."""

    point_seconds: float = POINT_SECONDS.typical[0]
    point_bytes: float = POINT_BYTES.typical[0]

    def refusal(self, cost: Cost) -> Answer | None:
        """Return the answer of a point whose estimate exceeds a limit, or None if it may be started.

        Example:
            >>> Limits(point_seconds=60).refusal(Cost(seconds=1e4, bytes=0)).detail
            'Not started: it may need 1e+04 s, the limit is 60 s.'
        """
        if cost.seconds > self.point_seconds:
            reason = f"Not started: it may need {cost.seconds:.3g} s, the limit is {self.point_seconds:g} s."
            return Answer.without(Status.TIMEOUT, reason)
        if cost.bytes > self.point_bytes:
            reason = f"Not started: it may need {cost.bytes:.3g} bytes, the limit is {self.point_bytes:g}."
            return Answer.without(Status.OUT_OF_MEMORY, reason)
        return None


def estimate(point: Point) -> Cost:
    """Return the estimated cost of a point, or 0 if its method does not apply or the estimate fails."""
    try:
        if point.method.applies(point.problem) is None:
            return point.method.cost(point.problem)
    except (ArithmeticError, ValueError, PrivsweepError):
        pass  # the evaluation will store the error in a row
    return Cost(seconds=0.0, bytes=0.0)
