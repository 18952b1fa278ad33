"""Stores for the page: real answers of cheap methods on every tab, and made-up answers with many ties."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privcore import Answer, DomainError, Point, Problem, evaluate, find, find_problem
from storage import open_store
from tests.storage.made_up import Claims, put, row

ONE_PHASE = "none(sigma=9,steps=1)"
TWO_PHASES = "none(sigma=9,steps=1); none(sigma=5,steps=2)"

SAMPLE: tuple[tuple[str, tuple[str, ...], Mapping[str, Sequence[Any]]], ...] = (
    (
        "unamplified-epsilon",
        ("unamplified.exact",),
        {
            "sigma": [0.5, 0.7, 1.0, 1.5, 2.0, 3.3, 5.0],
            "delta": [1e-10, 1e-8, 1e-6, 1e-5],
            "steps": [1, 10],
            "participations": [1, 2],
            "epochs": [1, 3, 10],
        },
    ),
    (
        "allocation-epsilon",
        ("allocation.largest",),
        {"sigma": [1.0, 2.0, 4.0], "steps": [10, 100, 1000], "delta": [1e-8, 1e-6, 1e-5]},
    ),
    (
        "allocation-epsilon",
        ("allocation.direct",),
        {"sigma": [1.0, 2.0, 4.0], "steps": [10, 100, 1000], "delta": [1e-6]},
    ),
    (
        "poisson-epsilon",
        ("poisson.renyi",),
        {"sigma": [1.0, 2.0], "steps": [10, 100], "sampling_probability": [0.1, 0.01], "delta": [1e-6]},
    ),
    ("shuffling-epsilon", ("shuffling.largest",), {"sigma": [1.0, 2.0], "steps": [10, 100], "delta": [1e-6]}),
    (
        "run-epsilon",
        ("runs.certified",),
        {"phases": [ONE_PHASE, TWO_PHASES], "adjacency": ["add-remove"], "delta": [1e-8, 1e-6, 1e-5]},
    ),
    ("run-epsilon", ("runs.certified",), {"phases": [ONE_PHASE], "adjacency": ["add"], "delta": [1e-6]}),
    (
        "label-advantage",
        ("labels.response", "labels.smoothing", "labels.variation", "labels.blind"),
        {
            "mechanism": ["none", "rr", "llp", "llp-geometric", "llp-laplace"],
            "prior": ["uniform", "beta(2,30)", "point(0.3)"],
            "bag_size": [1, 2, 4, 16, 64],
            "label_epsilon": [0.5, 1.0, 2.0, 4.0, float("inf")],
        },
    ),
    (
        "label-posterior",
        ("labels.bag",),
        {
            "mechanism": ["llp"],
            "bag": ["0.1,0.4,0.45", "0.5,0.5"],
            "released": [0.0, 1.0, 2.0],
            "member": [1, 2],
        },
    ),
    (
        "audit-tail",
        ("auditing.revealed",),
        {
            "canaries": [100, 1000],
            "guesses": [20, 50],
            "correct": [12, 18, 20, 30, 45],
            "claimed_epsilon": [0.5, 1.0, 2.0, 4.0],
            "delta": [0.0, 1e-8, 1e-5],
        },
    ),
    (
        "audit-epsilon",
        ("auditing.steinke",),
        {"canaries": [100], "guesses": [20, 50], "correct": [18, 20, 40, 45], "delta": [1e-5]},
    ),
    (
        "membership-private-advantage",
        ("membership.sharp",),
        {
            "claimed_epsilon": [0.1, 0.5, 1.0, 2.0, 4.0, 8.0],
            "claimed_delta": [0.0, 1e-8, 1e-5, 0.01],
            "odds": [0.5, 1.0],
            "neighbours": ["substitution", "add-remove"],
        },
    ),
    (
        "membership-record-risk",
        ("membership.exact",),
        {
            "atom_probability": [1e-6, 1e-4, 0.01, 0.1],
            "records": [1, 10, 100, 1000],
            "odds": [0.8, 1.0],
        },
    ),
)
"""Problems of every tab, methods, and the grids to ask; points to which a method does not apply stay out."""

TIES: Mapping[str, Sequence[Any]] = {
    "sigma": [0.5, 1.0, 1.5, 2.0],
    "delta": [1e-8, 1e-6, 1e-4],
    "steps": [3, 4],
    "participations": [1, 2, 3],
    "epochs": [1, 2, 5],
    "adjacency": ["add-remove", "add"],
}

SPARSE: Mapping[str, Sequence[Any]] = {
    "sigma": [1 + k / 256 for k in range(256)],
    "epsilon": [k / 256 for k in range(256)],
    "steps": [99],
    "participations": range(1, 81),
    "epochs": range(1, 81),
    "adjacency": ["add-remove", "remove", "add"],
}
"""More cells than a store tabulates for this number of problems."""

HOSTILE_NAME = "<img src=x onerror=window.hacked=1> '$(touch hacked)'.csv"
"""A valid name of a file."""


def grid(name: str, axes: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """The valid problems of a product."""
    for values in itertools.product(*axes.values()):
        try:
            yield find_problem(name).from_fields(dict(zip(axes, values, strict=True)))
        except DomainError:
            continue


def sample(root: Path) -> Path:
    """A store with real answers on every tab."""
    for name, methods, axes in SAMPLE:
        points = [Point(problem=p, method=find(m)()) for p in grid(name, axes) for m in methods]
        answers = [(point, evaluate(point)) for point in points]
        put(root, [row(point.problem, answer, method=point.method) for point, answer in answers if answer.ok])
    return root


def made_up(root: Path) -> Path:
    """A store with made-up answers.

    The ends of two problems are few small numbers, so that many corners are equally good: one fills its grid,
    which is tabulated, the other is too sparse for that. In the third, more noise is proved to be worse.
    The fourth has a prior from a file with a hostile name.
    """
    rng = random.Random(1)
    dense = [p for p in grid("unamplified-epsilon", TIES) if rng.random() < 0.7]
    put(root, [row(p, _ends(rng), method=rng.choice([None, Claims(), Claims(number=1)])) for p in dense])
    sparse = [{name: rng.choice(values) for name, values in SPARSE.items()} for _ in range(150)]
    problems = {find_problem("unamplified-delta").from_fields(fields) for fields in sparse}
    put(root, [row(problem, _ends(rng)) for problem in sorted(problems, key=repr)])
    fields = {"steps": 10, "delta": 1e-5}
    worse = [
        find_problem("shuffling-epsilon").from_fields({**fields, "sigma": sigma}) for sigma in (1.0, 2.0)
    ]
    clones = find("shuffling.clones")()
    put(root, [row(p, Answer.enclosure(k, k + 0.5), method=clones) for k, p in enumerate(worse, 1)])
    file = root.parent / HOSTILE_NAME
    file.write_text("eta\n0.1\n0.5\n")
    bag = {"mechanism": "llp", "prior": f"column({file},eta)", "bag_size": 3}
    problem = find_problem("label-advantage").from_fields(bag)
    put(root, row(problem, Answer.enclosure(0.1, 0.2), method=find("labels.cells")()))
    return root


def _ends(rng: random.Random) -> Answer:
    return Answer.enclosure(rng.choice([0.0, 0.1, 0.2]), rng.choice([0.3, 0.4, float("inf")]))


def stored_values(root: Path, kind: type[Problem]) -> dict[str, list[Any]]:
    """Return the sorted stored values of every field, of brackets and of answers with a confidence."""
    view = kind.name.replace("-", "_")
    with open_store(root) as store:
        columns = store.sql(f"from {view} where status = 'ok'")
        return {name: sorted(set(columns[name].to_pylist())) for name in kind.parameters}
