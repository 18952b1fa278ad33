"""Questions of the test vectors: a seeded draw of parameters that practitioners use, and of corner cases."""

import random
from collections.abc import Iterator, Mapping, Sequence

from flows.answers.ask import ask
from privcore import DomainError, Problem, find_problem, methods_for
from privcore.parameter import Value

SEED = 1
"""Seed of the draw; another seed gives other questions."""

COUNTS = {
    "allocation-epsilon": 130,
    "allocation-delta": 90,
    "sampled-allocation-epsilon": 50,
    "sampled-allocation-delta": 30,
    "laplace-allocation-epsilon": 30,
    "laplace-allocation-delta": 20,
    "response-allocation-epsilon": 30,
    "response-allocation-delta": 20,
    "balls-in-bins-epsilon": 50,
    "balls-in-bins-delta": 30,
    "poisson-epsilon": 120,
    "poisson-delta": 80,
    "truncated-poisson-epsilon": 25,
    "truncated-poisson-delta": 15,
    "fixed-size-epsilon": 40,
    "fixed-size-delta": 20,
    "with-replacement-epsilon": 30,
    "with-replacement-delta": 20,
    "shuffling-epsilon": 60,
    "shuffling-delta": 40,
    "unamplified-epsilon": 40,
    "unamplified-delta": 30,
}
"""Number of vectors of each problem."""

_CORNERS = 0.2
"""Probability that a field has the value of a corner case."""

_QUICK = ("certified", "exact", "clones")
"""Last parts of the names of the methods that bound epsilon from above."""

USUAL: Mapping[str, Sequence[Value]] = {
    "sigma": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0),
    "scale": (0.5, 1.0, 2.0, 4.0, 10.0),
    "local_epsilon": (0.1, 0.5, 1.0, 2.0, 4.0),
    "steps": (10, 50, 100, 234, 500, 1000, 2000, 5000, 10_000, 20_000),
    "participations": (1, 1, 1, 2, 5, 10),
    "epochs": (1, 1, 1, 3, 10, 30, 100),
    "sampling_probability": (1e-4, 5e-4, 0.001, 0.002, 256 / 60_000, 0.01, 0.02, 0.05),
    "examples": (1000, 10_000, 50_000, 60_000, 1_000_000),
    "batch_size": (10, 64, 256, 600, 1024),
    "largest_batch": (300, 1000, 5000, 20_000),
    "delta": (1e-5, 1e-6, 1e-8),
    "adjacency": ("add-remove", "add-remove", "remove", "add", "zero-out", "replace-one"),
    "redraw": ("one-epoch", "each-epoch", "once"),
}
"""Values that practitioners use; a value is listed several times to be drawn more often."""

CORNERS: Mapping[str, Sequence[Value]] = {
    "sigma": (0.3, 0.4, 10.0, 30.0, 100.0),
    "scale": (0.2, 50.0),
    "local_epsilon": (0.01, 8.0),
    "steps": (1, 2, 3, 5, 100_000, 1_000_000),
    "participations": (3, 50, 100),
    "epochs": (2, 300, 1000),
    "sampling_probability": (1e-6, 1e-5, 0.2, 0.5, 0.9, 1.0),
    "examples": (2, 10, 100, 100_000_000),
    "batch_size": (1, 2, 4096),
    "largest_batch": (1, 10),
    "delta": (1e-12, 1e-10, 1e-4, 0.001, 0.1),
}
"""Values at which formulas degenerate, lose digits, or meet a limit."""

EPSILONS = (0.0, 0.001, 0.01, 0.1, 1.0)
"""Epsilons of corner cases."""


def questions(problem: str) -> Iterator[Problem]:
    """Yield valid and distinct questions of a problem, without end; the same ones in every run.

    The epsilon of a question about delta is that of the same run at a drawn delta, to two digits, or a
    corner. At almost all other epsilons, delta is nearly 0 or 1.
    """
    kind = find_problem(problem)
    at_delta = find_problem(problem.removesuffix("delta") + "epsilon") if kind.asks == "delta" else kind
    # the participations of balls in bins are drawn last, as they were for the vectors that are published
    names = [name for name in at_delta.parameters if name in USUAL]
    if "redraw" in names:
        names.sort(key="participations".__eq__)
    draw = random.Random(f"{SEED} {problem}")
    seen = set()
    while True:
        try:
            question = at_delta.asked({name: _value(name, draw) for name in names})
            if kind is not at_delta:
                fields = {name: value for name, value in question.as_fields().items() if name != "delta"}
                question = kind.asked(fields | {"epsilon": _epsilon(question, draw)})
        except DomainError:  # the values contradict one another
            continue
        if question not in seen:
            seen.add(question)
            yield question


def _value(name: str, draw: random.Random) -> Value:
    """Return a drawn value of a field."""
    corner = name in CORNERS and draw.random() < _CORNERS
    return draw.choice((CORNERS if corner else USUAL)[name])


def _epsilon(question: Problem, draw: random.Random) -> Value:
    """Return the answer to a question about epsilon, to two digits, or sometimes a corner."""
    if draw.random() < _CORNERS:
        return draw.choice(EPSILONS)
    kinds = [kind for kind in methods_for(question) if kind.name.partition(".")[2] in _QUICK]
    return float(f"{ask(question, [kind() for kind in kinds]).upper:.2g}")
