"""Advantage of the best attack on a training run, compared with riskcal; a section of bench.py.

It is delta at epsilon 0. We have only this point of the trade-off curve; the other points are not compared.
"""

from collections.abc import Iterator
from typing import Any

from tests.benchmarks.enclosures import WIDTH, Scores, median, ours_at, theirs_at
from tests.benchmarks.measure import head, row, verdict
from tests.benchmarks.peer import Peer

LIMIT = 4.0
RUNS = [
    # sigma, rate, steps
    (1.0, 1.0, 1),
    (50.0, 1.0, 1),
    (1.0, 1e-2, 100),
    (1.0, 1e-3, 1000),
    (0.5, 1e-3, 1000),
    (1.0, 1e-4, 10**4),
    (2.0, 1e-2, 10**4),
    (0.6, 4e-3, 2500),
    (1.0, 1e-6, 10**6),
]


def table() -> Iterator[str]:
    """Yield our brackets of the advantage under Poisson sampling, with the results of riskcal."""
    peer = Peer("peer_attacks.py")
    problem, method = "poisson-delta", "poisson.certified"
    ours_at(problem, method, {"sigma": 1.0, "steps": 7, "epsilon": 0.0, "sampling_probability": 0.1})
    names = ["#", "sigma", "q", "steps", "ours: bracket of the advantage", "width", "ms", "MB"]
    yield head([*names, "riskcal, 1e-4", "riskcal, 1e-5", "ratio"])
    scores = Scores()
    for number, (sigma, rate, steps) in enumerate(RUNS, start=1):
        fields: dict[str, Any] = {"sigma": sigma, "sampling_probability": rate, "steps": steps}
        ours = ours_at(problem, method, fields | {"epsilon": 0.0})
        theirs = [
            theirs_at(peer, f"riskcal, {interval:g}", "advantage", LIMIT, fields=fields, interval=interval)
            for interval in (1e-4, 1e-5)
        ]
        cells = [str(number), f"{sigma:g}", f"{rate:g}", f"{steps:g}", *ours.cells()]
        yield row([*cells, *(said.cell(ours) for said in theirs), scores.add(ours, theirs, LIMIT)])
    peer.close()
    yield ""
    ratios = list(scores.ratios.values())
    yield verdict(
        "no slower than riskcal at points where it is as tight, and brackets within 1 %",
        f"median ratio {median(ratios):.3g}, least {min(ratios, default=float('nan')):.3g}; "
        f"{sum(ours.width <= WIDTH for ours in scores.brackets)} of {len(RUNS)} brackets within 1 %",
        bool(ratios)
        and all(ratio >= 1.0 for ratio in ratios)
        and all(o.width <= WIDTH for o in scores.brackets),
    )
    yield from scores.comments()
