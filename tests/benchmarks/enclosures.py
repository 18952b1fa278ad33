"""Comparison of a peer's epsilon with our bracket: its validity, its tightness, and the ratio of times."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.printing import rounded_down, rounded_up
from privcore import Point, evaluate, find, find_problem
from tests.benchmarks.measure import REPEATS, Measured, forget, measured
from tests.benchmarks.peer import PYTHON, Peer, PeerError

WIDTH = 0.01


@dataclass(frozen=True, kw_only=True)
class Ours:
    """Our bracket at a point, with its time and memory."""

    lower: float
    upper: float
    measured: Measured

    @property
    def width(self) -> float:
        """Relative width; 0 if both ends are 0."""
        return (
            self.upper / self.lower - 1.0 if self.lower > 0.0 else 0.0 if self.upper == 0.0 else float("inf")
        )

    @property
    def tight(self) -> float:
        """Largest upper end that counts as tight as ours: 1 % above our lower end, or our upper end."""
        return max(self.upper, self.lower * (1.0 + WIDTH))

    def cells(self) -> list[str]:
        """Return the columns of the bracket."""
        took = f"{self.measured.seconds * 1e3:.3g}"
        bracket = f"{rounded_down(self.lower)} - {rounded_up(self.upper)}"
        return [bracket, f"{self.width:.2%}", took, f"{self.measured.megabytes:.1f}"]


@dataclass(frozen=True, kw_only=True)
class Theirs:
    """The result of a peer at a point: both ends, the upper end only, or the reason for no answer.

    A peer that `refines` continues until it is as tight as requested, so more time would have made it so.
    """

    peer: str
    lower: float = 0.0
    upper: float = float("inf")
    measured: Measured | None = None
    failure: str = ""
    refines: bool = False

    def below(self, ours: Ours) -> bool:
        """Whether the peer's upper bound is below a proved lower bound."""
        return self.measured is not None and self.upper < ours.lower

    def above(self, ours: Ours) -> bool:
        """Whether the peer's lower bound exceeds our upper bound."""
        return self.measured is not None and self.lower > ours.upper

    def as_tight(self, ours: Ours) -> bool:
        """Whether the peer's upper bound is valid and as tight as ours."""
        return self.measured is not None and ours.lower <= self.upper <= ours.tight

    def cell(self, ours: Ours) -> str:
        """Return the peer's column."""
        if self.measured is None:
            return self.failure
        ends = f"{self.lower:.5g} - {self.upper:.5g}" if self.lower > 0.0 else f"{self.upper:.5g}"
        told = [ends, f"{self.measured.seconds:.2g} s", f"{self.measured.megabytes:.0f} MB"]
        told += [f"**below the truth** by {1.0 - self.upper / ours.lower:.1g}"] if self.below(ours) else []
        told += ["**lower end above ours**"] if self.above(ours) else []
        return "; ".join(told)


def ours_at(problem: str, method: str, fields: dict[str, Any]) -> Ours:
    """Return our bracket, at the default tolerance of the method."""
    point = Point(problem=find_problem(problem).from_fields(fields), method=find(method)())
    found = measured(lambda: evaluate(point), before=forget)
    if found.value.lower is None or found.value.upper is None:
        raise RuntimeError(f"{method} does not answer {fields}: {found.value.detail}")
    return Ours(lower=found.value.lower, upper=found.value.upper, measured=found)


def theirs_at(
    peer: Peer, name: str, function: str, limit: float, runs: int = REPEATS, **arguments: Any
) -> Theirs:
    """Return the result of a peer's function that gives a lower and an upper end."""
    refines = "accuracy" in arguments
    if not PYTHON.exists():
        return Theirs(peer=name, failure="not installed")
    try:
        found = peer.ask(function, limit, runs, **arguments)
    except PeerError as error:
        return Theirs(peer=name, failure=str(error), refines=refines)
    lower, upper = found.value
    return Theirs(peer=name, lower=lower, upper=upper, measured=found, refines=refines)


@dataclass
class Scores:
    """Results over all points.

    Attributes:
        brackets: Our brackets, in order.
        ratios: Seconds of the fastest peer that is as tight, divided by ours, if there is such a peer.
        beyond: Seconds of the limit divided by ours, if a peer that refines until it is as tight reached it.
        peers: All results of peers, with our bracket.
    """

    brackets: list[Ours] = field(default_factory=list)
    ratios: dict[int, float] = field(default_factory=dict)
    beyond: dict[int, float] = field(default_factory=dict)
    peers: list[tuple[int, Ours, Theirs]] = field(default_factory=list)

    def add(self, ours: Ours, theirs: Sequence[Theirs], limit: float) -> str:
        """Add a point and return its ratio as a cell."""
        number = len(self.brackets) + 1
        self.brackets.append(ours)
        self.peers += [(number, ours, answer) for answer in theirs]
        seconds = ours.measured.seconds
        tight = {a.measured.seconds: a.peer for a in theirs if a.measured and a.as_tight(ours)}
        if tight:
            fastest = min(tight)
            self.ratios[number] = fastest / seconds
            return f"{fastest / seconds:.3g} ({tight[fastest]})"
        if any(answer.refines and answer.failure.startswith(">") for answer in theirs):
            self.beyond[number] = limit / seconds
            return f"> {limit / seconds:.3g}"
        return "none as tight"

    def slower(self) -> dict[int, float]:
        """Return, for all points, lower bounds on how many times slower the peers are."""
        return self.ratios | self.beyond

    def comments(self) -> Iterator[str]:
        """Yield the number of answers of each peer, and every value that contradicts a proof."""
        for peer in dict.fromkeys(answer.peer for _, _, answer in self.peers):
            said = [x for x in self.peers if x[2].peer == peer and x[2].failure != "not asked"]
            if not said:
                continue
            answered = sum(answer.measured is not None for _, _, answer in said)
            tight = sum(answer.as_tight(ours) for _, ours, answer in said)
            below = [n for n, ours, answer in said if answer.below(ours)]
            points = f" (points {', '.join(map(str, dict.fromkeys(below)))})" if below else ""
            yield (
                f"* {peer}: {answered} of {len(said)} answered, {tight} as tight as ours, "
                f"{len(below)} below the truth{points}."
            )
        for number, ours, answer in self.peers:
            if answer.above(ours):
                yield f"* **Point {number}: the lower end of {answer.peer} is above our upper end.**"


def median(values: Sequence[float]) -> float:
    """Return the median; NaN if there are no values."""
    return statistics.median(values) if values else float("nan")
