"""Questions as practitioners ask, drawn with a seed, and their brackets by the certified methods."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privcore import Problem, find, find_problem

METHODS = {
    "allocation": "allocation.certified",
    "sampled-allocation": "allocation.certified",
    "poisson": "poisson.certified",
    "balls-in-bins": "bins.certified",
    "unamplified": "unamplified.exact",
    "run": "runs.certified",
}
SHARES = {
    "allocation": 6,
    "poisson": 6,
    "balls-in-bins": 2,
    "sampled-allocation": 1,
    "unamplified": 1,
    "run": 1,
}
MOST_STEPS = 1e7


@dataclass(frozen=True)
class Asked:
    """A question, with its bracket.

    Attributes:
        problem: The problem.
        lower: Lower end by the certified method.
        upper: Upper end.
    """

    problem: Problem
    lower: float
    upper: float

    @property
    def content(self) -> dict[str, Any]:
        """The question in the form that the engine of the page reads."""
        return {"problem": self.problem.name, "fields": self.problem.as_fields()}


def _scaled(rng: random.Random, low: float, high: float) -> float:
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(max(low, high)))):.3g}")


def _fields(rng: random.Random, scheme: str) -> dict[str, Any]:
    epochs = round(_scaled(rng, 1, 100)) if rng.random() < 0.6 else 1
    steps = max(1, round(_scaled(rng, 1, MOST_STEPS / epochs)))
    fields: dict[str, Any] = {"sigma": _scaled(rng, 0.3, 10.0), "epochs": epochs}
    if scheme != "unamplified":
        fields["steps"] = steps
    if scheme in ("poisson", "sampled-allocation"):
        rare = rng.random() < 0.3 or scheme == "sampled-allocation"
        rate = _scaled(rng, 1e-6, 0.5) if rare else _scaled(rng, 0.3, 3.0) / steps
        fields["sampling_probability"] = min(1.0, rate)
    if scheme == "balls-in-bins":
        fields["redraw"] = rng.choice(("once", "each-epoch"))
    return fields


def _notation(fields: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in fields.items())


def _question(rng: random.Random) -> tuple[str, dict[str, Any]]:
    scheme = rng.choices(list(SHARES), list(SHARES.values()))[0]
    if scheme == "run":
        first, second = _fields(rng, "allocation"), _fields(rng, "poisson")
        for each in (first, second):
            each["steps"] = max(1, each["steps"] // 100)
        text = f"allocation({_notation(first)}); poisson({_notation(second)})"
        return scheme, {"phases": text, "adjacency": "add-remove"}
    fields = _fields(rng, scheme)
    if scheme == "balls-in-bins":
        fields["adjacency"] = "add-remove"
    elif scheme in ("allocation", "poisson") and rng.random() < 0.2:
        fields["adjacency"] = rng.choice(("remove", "add", "zero-out"))
    return scheme, fields


def bracket(problem: Problem) -> tuple[float, float]:
    """Return the bracket of a problem by its certified method, at the default tolerance."""
    answer = find(METHODS[problem.name.rpartition("-")[0]])().answer(problem, seed=0)
    return answer.lower, answer.upper


def asked(seed: int, count: int) -> list[Asked]:
    """Return questions about epsilon, and about the delta at an epsilon of the same size."""
    rng = random.Random(seed)
    found: list[Asked] = []
    while len(found) < count:
        scheme, fields = _question(rng)
        delta = 10.0 ** -rng.randint(3, 12)
        problem = find_problem(f"{scheme}-epsilon").from_fields({**fields, "delta": delta})
        lower, upper = bracket(problem)
        if rng.random() < 0.2 and 1e-3 < upper < 300.0:
            epsilon = float(f"{upper:.3g}")
            problem = find_problem(f"{scheme}-delta").from_fields({**fields, "epsilon": epsilon})
            lower, upper = bracket(problem)
        found.append(Asked(problem, lower, upper))
    return found
