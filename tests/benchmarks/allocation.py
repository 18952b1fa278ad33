"""Random allocation: our brackets, PLD-accounting and random-allocation; a section of bench.py."""

from collections.abc import Iterator
from typing import Any

from tests.benchmarks.enclosures import WIDTH, Ours, Scores, Theirs, median, ours_at, theirs_at
from tests.benchmarks.measure import head, row, verdict
from tests.benchmarks.peer import Peer
from tests.benchmarks.points import KNOWN, allocation_points, listed

LIMIT, EDGE_LIMIT = 4.0, 2.0
"""Limits of processor seconds for one run of a peer, at the known points and at the other points."""
PAPER = ("analytic", "direct", "RDP_DCO", "recursive", "decomposition", "combined")
UNPROVED = ("direct", "combined")
"""Methods whose shift in the direction add lacks the factor k E: no theorem makes it a bound there."""
ADAPTIVE, GEOMETRIC, BY_PAPER = (
    "PLD-accounting adaptive",
    "PLD-accounting geometric, 1e-2",
    "random-allocation",
)


def table() -> Iterator[str]:
    """Yield a row for each point, then the results over all points, compared with the targets."""
    peer = Peer("peer_allocation.py")
    ours_at(
        "allocation-epsilon", "allocation.certified", {"sigma": 1.0, "steps": 7, "delta": 1e-3}
    )  # compile
    names = ["#", "sigma", "t", "k", "E", "delta", "adjacency", "ours: bracket", "width", "ms", "MB"]
    yield head([*names, ADAPTIVE, "the same, at our width", GEOMETRIC, f"{BY_PAPER}, the best", "ratio"])
    scores = Scores()
    points = allocation_points()
    for number, fields in enumerate(points, start=1):
        limit = LIMIT if number <= len(KNOWN) else EDGE_LIMIT
        ours = ours_at("allocation-epsilon", "allocation.certified", fields)
        refined = _refined(peer, fields, ours, limit)
        methods = list(_methods(peer, fields, ours, limit))
        cells = [str(number), *listed(fields), *ours.cells(), *(said.cell(ours) for said in refined)]
        yield row([*cells, _best(methods, ours), scores.add(ours, refined + methods, limit)])
    peer.close()
    yield ""
    yield from _targets(scores, points)
    yield from scores.comments()


def _refined(peer: Peer, fields: dict[str, Any], ours: Ours, limit: float) -> list[Theirs]:
    """Return the results of PLD-accounting: by default, at our width if that is looser, and on a fixed grid.

    The grid is used for one step of one epoch only, because its compositions take minutes at every point.
    """
    usual = theirs_at(peer, ADAPTIVE, "adaptive", limit, fields=fields, accuracy=-1.0)
    again = Theirs(peer=f"{ADAPTIVE}, at our width", failure="not asked")
    accuracy = ours.upper - ours.lower
    if usual.measured is not None and not usual.as_tight(ours) and accuracy > 0.0:
        again = theirs_at(peer, again.peer, "adaptive", limit, fields=fields, accuracy=accuracy)
    grid = Theirs(peer=GEOMETRIC, failure="not asked")
    if fields["participations"] == fields["epochs"] == 1:
        grid = theirs_at(peer, GEOMETRIC, "geometric", limit, fields=fields)
    return [usual, again, grid]


def _methods(peer: Peer, fields: dict[str, Any], ours: Ours, limit: float) -> Iterator[Theirs]:
    """Yield the result of each method of random-allocation, run once; the least valid bound is run again."""
    several = fields["participations"] * fields["epochs"] > 1
    found = {
        method: theirs_at(peer, f"{BY_PAPER} {method}", "by_paper", limit, 1, fields=fields, method=method)
        for method in PAPER
        if not (method in UNPROVED and fields["adjacency"] == "add" and several)
    }
    valid = [method for method, said in found.items() if said.measured is not None and not said.below(ours)]
    best = min(valid, key=lambda method: found[method].upper, default=None)
    for method, said in found.items():
        again = method == best
        name = said.peer
        yield theirs_at(peer, name, "by_paper", limit, fields=fields, method=method) if again else said


def _best(methods: list[Theirs], ours: Ours) -> str:
    """Return the cell of the least valid upper bound, and the names of methods that are below the truth."""
    names = {said.peer: said.peer.removeprefix(f"{BY_PAPER} ") for said in methods}
    valid = [said for said in methods if said.measured is not None and not said.below(ours)]
    if not valid:
        return methods[0].failure
    best = min(valid, key=lambda said: said.upper)
    wrong = [names[said.peer] for said in methods if said.below(ours)]
    told = f"; **below the truth**: {', '.join(wrong)}" if wrong else ""
    return f"{names[best.peer]} {best.cell(ours)}{told}"


def _targets(scores: Scores, points: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the targets with the measurements."""
    known = scores.brackets[: len(KNOWN)]
    for text, brackets in ((f"the {len(KNOWN)} known points", known), ("all points", scores.brackets)):
        narrow = sum(ours.width <= WIDTH for ours in brackets)
        yield verdict(
            f"an answer at {text}, with a bracket of 1 %",
            f"{len(brackets)} answers, {narrow} brackets within 1 %, "
            f"the widest {max(ours.width for ours in brackets):.2%}",
            narrow == len(brackets),
        )
        seconds = [ours.measured.seconds for ours in brackets]
        yield verdict(
            f"median at most 20 ms and worst at most 1 s over {text}",
            f"median {median(seconds) * 1e3:.3g} ms, worst {max(seconds):.3g} s",
            median(seconds) <= 0.02 and max(seconds) <= 1.0,
        )
    single = [n for n, point in enumerate(points, start=1) if point["participations"] in (1, point["steps"])]
    narrow = sum(scores.brackets[n - 1].width <= WIDTH for n in single)
    yield (
        f"* k = 1 or k = t: {narrow} of {len(single)} brackets within 1 %. For 1 < k < t the upper end "
        "is that of a composition that dominates k of t, while the lower end bounds k of t itself."
    )
    slower = {n: ratio for n, ratio in scores.slower().items() if n <= len(KNOWN)}
    if not slower:
        return
    found = sum(n in scores.ratios for n in slower)
    least = min(slower, key=lambda n: slower[n])
    yield verdict(
        "100 times faster (median) than the fastest peer that is as tight, and every ratio above 10",
        f"median {median(list(slower.values())):.3g}, least {slower[least]:.3g} at point {least}, "
        f"{found} ratios and {len(slower) - found} lower bounds at {len(KNOWN)} points",
        median(list(slower.values())) >= 100.0 and slower[least] > 10.0,
    )
    every = scores.slower()
    close = [f"{ratio:.3g} at point {n}" for n, ratio in sorted(every.items()) if ratio <= 10.0]
    yield (
        f"* At all {len(points)} points: {len(every)} ratios, median {median(list(every.values())):.3g}; "
        f"10 or less: {', '.join(close) or 'none'}."
    )
