"""The support matrix: which methods bound which problem, on which side, and how surely."""

from collections import Counter
from typing import Any

from flows.printing import show
from privcore import PROBLEMS, Direction, Method, Problem, answering

PROVED, ESTIMATED = "proved", "estimate"
SIDES = {
    Direction.ENCLOSURE: "both ends",
    Direction.UPPER: "upper end",
    Direction.LOWER: "lower end",
    Direction.ESTIMATE: "estimate",
}
_CONFIDENCE = "confidence"


def matrix() -> list[dict[str, Any]]:
    """Return an entry for each problem and method that belong together, in JSON types.

    `holds` is `proved`, `estimate`, or the knob or the problem's field that holds the confidence.
    """
    return [
        {
            "problem": problem.name,
            "method": method.name,
            "direction": method.direction.value,
            "holds": holds(problem, method),
        }
        for problem in PROBLEMS
        for method in answering(problem)
    ]


def holds(problem: type[Problem], method: type[Method]) -> str:
    """Return how surely what a method says about a problem holds, as both declare it.

    A question that has a confidence is about something random, so that its answers are no surer than that.
    """
    if method.direction is Direction.ESTIMATE:
        return ESTIMATED
    named = [name for name in (*method.knobs, *problem.parameters) if _CONFIDENCE in name]
    return named[0] if named else PROVED


def show_matrix() -> None:
    """Print a row for each problem, with the methods by the side that they bound."""
    entries = matrix()
    rows = []
    for problem in PROBLEMS:
        mine = [entry for entry in entries if entry["problem"] == problem.name]
        family = Counter(entry["method"].partition(".")[0] for entry in mine).most_common(1)[0][0]
        cells = [
            ", ".join(_short(entry, family) for entry in mine if entry["direction"] == direction)
            for direction in SIDES
        ]
        rows.append([problem.name, f"{family}.", *cells])
    show(["problem", "method", *SIDES.values()], rows, title="Who bounds what, and on which side")
    print("* at a confidence below 1, which a knob of the method or a field of the problem sets")
    print(
        "fields of a problem, knobs of a method: privsweep methods NAME; all fields: privsweep methods --all"
    )


def _short(entry: dict[str, Any], family: str) -> str:
    name = entry["method"].removeprefix(f"{family}.")
    return name if entry["holds"] in (PROVED, ESTIMATED) else f"{name}*"
