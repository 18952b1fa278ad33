"""Answers of all methods that apply to a problem: their proved bounds are intersected, never averaged."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from privcore import (
    Answer,
    Bracket,
    ExitCode,
    Interval,
    Method,
    Point,
    PrivsweepError,
    Problem,
    Status,
    evaluate,
    intersect,
    methods_for,
)
from privcore.registry import promise

LIMIT_SECONDS = 300.0
LIMIT_BYTES = 2e9
CONFLICT = "conflict"

_WORST_FIRST = (Status.FAILED, Status.CRASHED, Status.OUT_OF_MEMORY, Status.TIMEOUT, Status.NOT_APPLICABLE)


class UncoveredError(PrivsweepError):
    """No stored answer, and no answer that may be computed, covers the problem."""

    exit_code = ExitCode.UNCOVERED


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The answer of one method, with the seconds that it took: wall time, and processor time."""

    method: Method
    answer: Answer
    seconds: float
    cpu_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Asked(Bracket):
    """The best bracket that the replies of several methods prove together.

    Its confidence is below 1 only if no method proves anything. Then all intervals hold together with this
    probability, except intervals of methods that another method covers.

    Attributes:
        problem: The problem.
        replies: One for each method, including methods that do not apply.
        status: `ok` if any method gave an answer (an estimate alone leaves the bracket trivial); `conflict`
            if proofs contradict one another, and then nothing is claimed; else the worst status.
        detail: For `ok`, empty; else the reason, in one sentence.
    """

    problem: Problem
    replies: tuple[Reply, ...]
    status: str = Status.OK.value
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is an answer and no contradiction."""
        return self.status == Status.OK

    def likely(self) -> Bracket | None:
        """Return the narrower bracket that also uses intervals with a confidence, or None.

        All its intervals hold together with its confidence, by the union bound. None if the bracket is not a
        proof or not wider, or if the intervals contradict a proof.
        """
        answered = [reply for reply in self.replies if reply.answer.ok]
        doubtful = _uncovered([reply for reply in answered if not reply.answer.rigorous])
        if not self.ok or self.confidence < 1.0 or not doubtful:
            return None
        used = [reply.answer.said_by(reply.method.name) for reply in doubtful]
        proof = Bracket(lower=self.lower, upper=self.upper, lower_by=self.lower_by, upper_by=self.upper_by)
        found = intersect([proof, *used], self.problem.largest)
        narrower = found.lower > self.lower or found.upper < self.upper
        return found if narrower and found.confidence > 0.0 and not found.crossed else None

    def as_content(self) -> dict[str, Any]:
        """Return the content of one JSON line; `detail` is present only if the status is not `ok`."""
        content: dict[str, Any] = {
            "problem": self.problem.name,
            "fields": self.problem.as_fields(),
            "lower": self.lower,
            "upper": self.upper,
            "confidence": self.confidence,
            "status": str(self.status),
            "methods": [_reply_content(reply) for reply in self.replies],
        }
        content |= conditions(self.problem)
        if (likely := self.likely()) is not None:
            content["likely"] = {name: getattr(likely, name) for name in ("lower", "upper", "confidence")}
        return content if self.ok else content | {"detail": self.detail}


def conditions(problem: Problem) -> dict[str, str]:
    """Return the neighbouring relation that follows from a kind of problem, and an assumption, for JSON."""
    known = {"neighbours": problem.relation(), "assumed": problem.assumption()}
    return {name: text for name, text in known.items() if text}


def ask(
    problem: Problem,
    methods: Sequence[Method] | None = None,
    *,
    limit_seconds: float = LIMIT_SECONDS,
    limit_bytes: float = LIMIT_BYTES,
    until: Callable[[Asked], bool] | None = None,
    evaluated: Callable[[Point], Answer] = evaluate,
) -> Asked:
    """Evaluate a problem by all methods that apply, or by the given ones.

    Args:
        problem: The question.
        methods: Methods to use, with their options; None means all registered methods with their defaults.
        limit_seconds: A method whose estimated time exceeds this is not started.
        limit_bytes: Same, for memory.
        until: Condition that ends the computation early; then the cheapest methods that give both ends go
            first. None uses all methods.
        evaluated: Function that computes a point within the limits.

    Returns:
        The best bracket with the reply of every method.

    Raises:
        PrivsweepError: A given method does not answer this kind of problem.

    Example:
        >>> from privcore import find_problem
        >>> asked = ask(find_problem("unamplified-epsilon")(sigma=1.0, delta=1e-5))
        >>> asked.status, round(asked.upper, 4), asked.upper_by
        ('ok', 4.3772, 'unamplified.exact')
    """
    chosen = [method() for method in methods_for(problem)] if methods is None else list(methods)
    points = [Point(problem=problem, method=method) for method in chosen]
    if until is not None:
        points.sort(key=lambda point: promise(point.method, problem))
    replies: list[Reply] = []
    for point in points:
        replies.append(_reply(point, limit_seconds, limit_bytes, evaluated))
        if until is not None and until(asked := combined(problem, replies)):
            return asked
    return combined(problem, replies)


def is_tight(ends: Interval, width: float) -> bool:
    """Return whether the relative width of an interval is at most this."""
    return ends.upper < math.inf and ends.upper - ends.lower <= width * ends.upper


def _reply(
    point: Point, limit_seconds: float, limit_bytes: float, evaluated: Callable[[Point], Answer]
) -> Reply:
    started, used = time.perf_counter(), time.process_time()
    answer = _refusal(point, limit_seconds, limit_bytes) or evaluated(point)
    return Reply(
        method=point.method,
        answer=answer,
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - used,
    )


def _refusal(point: Point, limit_seconds: float, limit_bytes: float) -> Answer | None:
    """Return the reason why a point is not started, or None."""
    name, problem = point.method.name, point.problem
    if (reason := point.method.applies(problem)) is not None:
        return Answer.without(Status.NOT_APPLICABLE, reason)
    cost = point.method.cost(problem)
    if cost.seconds > limit_seconds:
        sentence = f"Not started: {name} may need {cost.seconds:.3g} s, the limit is {limit_seconds:.6g} s."
        return Answer.without(Status.TIMEOUT, sentence)
    if cost.bytes > limit_bytes:
        sentence = f"Not started: {name} may need {cost.bytes:.3g} bytes, the limit is {limit_bytes:.6g}."
        return Answer.without(Status.OUT_OF_MEMORY, sentence)
    return None


def combined(problem: Problem, replies: Sequence[Reply]) -> Asked:
    """Intersect proofs; intervals that hold with a probability count only if there is no proof."""
    answered = [reply for reply in replies if reply.answer.ok]
    if not answered:
        worst = min(replies, key=lambda reply: _WORST_FIRST.index(reply.answer.status))
        status, detail = worst.answer.status.value, worst.answer.detail
        return Asked(problem=problem, replies=tuple(replies), status=status, detail=detail)
    proved = [reply for reply in answered if reply.answer.rigorous and _informs(reply.answer, problem)]
    used = proved or _uncovered([reply for reply in answered if not reply.answer.rigorous])
    bracket = Bracket(confidence=0.0)
    if used:
        bracket = intersect((reply.answer.said_by(reply.method.name) for reply in used), problem.largest)
    if bracket.confidence <= 0.0:
        return Asked(problem=problem, replies=tuple(replies), upper=problem.largest)
    if bracket.crossed:
        detail = contradiction(bracket)
        return Asked(problem=problem, replies=tuple(replies), status=CONFLICT, detail=detail)
    return Asked(problem=problem, replies=tuple(replies), **vars(bracket))


def contradiction(bracket: Bracket, what: str = "Methods") -> str:
    """Return the sentence about a lower end above the upper end."""
    return (
        f"{what} contradict one another: {bracket.lower_by} gives at least {bracket.lower!r}, "
        f"{bracket.upper_by} at most {bracket.upper!r}."
    )


def _uncovered(replies: Sequence[Reply]) -> list[Reply]:
    """Return the replies of those methods that no other of these methods covers."""
    covered = {name for reply in replies for name in reply.method.covers}
    return [reply for reply in replies if reply.method.name not in covered]


def _informs(answer: Answer, problem: Problem) -> bool:
    return answer.lower > 0.0 or answer.upper < problem.largest


def _reply_content(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    content: dict[str, Any] = {
        "name": reply.method.name,
        "lower": answer.lower,
        "upper": answer.upper,
        "confidence": answer.confidence,
        "status": answer.status.value,
        "detail": answer.detail,
        "seconds": reply.seconds,
    }
    return content if answer.value is None else content | {"value": answer.value}
