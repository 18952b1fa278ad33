"""Evaluate one point; an error inside becomes a status with its reason."""

from privcore.answer import Answer, Status
from privcore.errors import PrivsweepError
from privcore.point import Point


def evaluate(point: Point) -> Answer:
    """Return the answer to a point.

    Args:
        point: Problem and method; both were validated when they were constructed.

    Returns:
        The method's answer; `not_applicable`, `out_of_memory` or `failed` with the reason otherwise.
        A numerical failure never raises.

    Example:
        >>> from privcore import Point, find, find_problem
        >>> problem = find_problem("unamplified-epsilon")(sigma=1.0, delta=1e-5)
        >>> answer = evaluate(Point(problem=problem, method=find("unamplified.exact")()))
        >>> answer.status, round(answer.upper, 4)
        (<Status.OK: 'ok'>, 4.3772)
    """
    try:
        if (reason := point.method.applies(point.problem)) is not None:
            return Answer.without(Status.NOT_APPLICABLE, reason)
        return point.method.answer(point.problem, point.seed)
    except PrivsweepError as error:  # a file that the problem refers to has changed
        return Answer.without(Status.FAILED, str(error))
    except MemoryError:
        return Answer.without(Status.OUT_OF_MEMORY, f"{point.method.name} ran out of memory.")
    except Exception as error:  # noqa: BLE001  a sweep must survive each point; the row has the reason
        return Answer.without(Status.FAILED, f"{type(error).__name__}: {error}")
