"""Runs of one phase are answered by the methods of their sampler, on whose versions their own depend."""

from privcore import Direction, answering
from privcore.registry import versions
from privcore.training.own_problem import own_problem
from privcore.training.problems import RunDelta, RunEpsilon

PHASES = (
    "poisson(sigma=1,steps=10,sampling_probability=0.1)",
    "allocation(sigma=1,steps=10)",
    "shuffling(sigma=1,steps=10,redraw=each-epoch)",
    "none(sigma=1,steps=10)",
)
BUILT_ON = {
    "allocation.analytic": 1,
    "allocation.certified": 5,
    "allocation.combined": 3,
    "allocation.conditional": 1,
    "allocation.corollary": 1,
    "allocation.decomposition": 2,
    "allocation.direct": 1,
    "allocation.dong": 1,
    "allocation.largest": 1,
    "allocation.recursive": 2,
    "allocation.sums": 1,
    "allocation.truncated": 2,
    "poisson.certified": 5,
    "poisson.renyi": 1,
    "shuffling.clones": 1,
    "shuffling.composed": 1,
    "shuffling.largest": 1,
    "unamplified.exact": 1,
}
"""Versions of the methods that answer for `RUNS`."""
RUNS = {"runs.certified": 7, "bins.certified": 4}


def test_a_new_version_of_a_sampler_s_method_is_a_new_version_of_the_methods_of_runs() -> None:
    asked = [
        own_problem(kind(phases=text, adjacency="zero-out", **at))
        for text in PHASES
        for kind, at in ((RunEpsilon, {"delta": 1e-5}), (RunDelta, {"epsilon": 1.0}))
    ]
    assert all(asked)
    used = {
        method.name
        for problem in filter(None, asked)
        for method in answering(type(problem))
        if method.direction is not Direction.ESTIMATE and "confidence" not in method.knobs
    }
    now = versions()
    assert {name: now[name] for name in used} == BUILT_ON, "raise the versions of RUNS, then state all here"
    assert {name: now[name] for name in RUNS} == RUNS
