"""Poisson sampling: our brackets, dp-accounting and prv-accountant; a section of bench.py."""

from collections.abc import Iterator

from tests.benchmarks import poisson_drawn
from tests.benchmarks.enclosures import WIDTH, Scores, median, ours_at, theirs_at
from tests.benchmarks.measure import head, row, verdict
from tests.benchmarks.peer import Peer
from tests.benchmarks.points import KNOWN, listed, poisson_points

LIMIT, EDGE_LIMIT = 4.0, 2.0
"""Limits of processor seconds for one run of a peer, at the known points and at the other points."""
FINE, USUAL, RENYI, PRV = "PLD 1e-5", "PLD 1e-4", "RDP", "prv-accountant"


def table() -> Iterator[str]:
    """Yield drawn runs, then a row for each known point, and the results compared with the targets."""
    yield from poisson_drawn.table()
    yield ""
    peer = Peer("peer_poisson.py")
    problem, method = "poisson-epsilon", "poisson.certified"
    first = {"sigma": 1.0, "steps": 7, "delta": 1e-3, "sampling_probability": 0.1}
    ours_at(problem, method, first)  # loads compiled code
    names = ["#", "sigma", "t", "E", "delta", "adjacency", "q", "ours: bracket", "width", "ms", "MB"]
    peers = [
        f"dp-accounting {USUAL}",
        f"dp-accounting {FINE}",
        f"dp-accounting {RENYI}",
        f"{PRV} at our width",
    ]
    yield head([*names, *peers, "ratio"])
    scores = Scores()
    points = poisson_points()
    for number, fields in enumerate(points, start=1):
        limit = LIMIT if number <= len(KNOWN) else EDGE_LIMIT
        ours = ours_at(problem, method, fields)
        error = max(0.5 * (ours.upper - ours.lower), 1e-9)
        theirs = [
            theirs_at(peer, peers[0], "pld", limit, fields=fields, interval=1e-4),
            theirs_at(peer, peers[1], "pld", limit, fields=fields, interval=1e-5),
            theirs_at(peer, peers[2], "rdp", limit, fields=fields),
            theirs_at(peer, peers[3], "prv", limit, fields=fields, error=error),
        ]
        cells = [str(number), *listed(fields), *ours.cells(), *(answer.cell(ours) for answer in theirs)]
        yield row([*cells, scores.add(ours, theirs, limit)])
    peer.close()
    yield ""
    slower = {n: f"point {n} ({ratio:.2g})" for n, ratio in scores.ratios.items() if ratio < 1.0}
    yield verdict(
        "no slower than the fastest peer that is as tight",
        f"faster at {len(scores.ratios) - len(slower)} of {len(scores.ratios)} points with a peer as tight, "
        f"median ratio {median(list(scores.ratios.values())):.3g}"
        + (f"; slower at {', '.join(slower.values())}" if slower else ""),
        bool(scores.ratios) and not slower,
    )
    wide = [n for n, ours in enumerate(scores.brackets, start=1) if ours.width > WIDTH]
    seconds = [ours.measured.seconds for ours in scores.brackets]
    yield (
        f"* Ours: median {median(seconds) * 1e3:.3g} ms, worst {max(seconds):.3g} s; {len(wide)} of "
        f"{len(points)} brackets wider than 1 %" + (f": points {', '.join(map(str, wide))}." if wide else ".")
    )
    yield from scores.comments()
