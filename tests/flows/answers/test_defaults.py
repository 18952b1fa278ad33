"""No field that changes an answer is left out of a question, unless its default is the safe value.

The truth is computed at drawn typical points, at the default of a field and at its other typical values.
"""

import math
import random
from collections.abc import Iterator
from contextlib import suppress

import pytest

from flows.answers.ask import ask, is_tight
from privcore import PROBLEMS, DomainError, Problem, find_problem
from privcore.parameter import Integer, Real
from privcore.problem import Trend

POINTS = 4
"""Number of points of each problem."""
DRAWS = 40
"""Number of draws that look for these points among those that cheap methods answer."""
SECONDS = 0.3
"""Largest estimated time of a method, several times the real one."""
SLOW = {
    "audit-claim-tail": 6.0,
    "audit-mu": 6.0,
    "audit-dpsgd-noise": 6.0,
    "audit-runs-epsilon": 6.0,
    "membership-attack-advantage": 6.0,
    "membership-summary-records": 6.0,
    "truncated-poisson-delta": 6.0,
}
"""Problems whose methods need more; they have one point."""
CHANGE = 1e-3
"""Relative change of a truth that counts, which is the tolerance of a bracket."""
FIXED = {"canaries": 1000, "guesses": 100, "correct": 90, "members": 100, "nonmembers": 1000}
FIXED |= {"runs_with": 1000, "runs_without": 1000, "true_positives": 60, "false_positives": 0}
"""Counts of audits and attacks that refute a claim."""

LARGE, SMALL, NEITHER = "large", "small", "neither"
SAFE = {
    "accuracy": LARGE,
    "capacity": LARGE,
    "advantage": LARGE,
    "correct": LARGE,
    "delta": LARGE,
    "divergence": LARGE,
    "epsilon": LARGE,
    "error": LARGE,
    "log_ratio": LARGE,
    "loss": LARGE,
    "noise_multiplier": LARGE,
    "probability": LARGE,
    "records": LARGE,
    "risk": LARGE,
    "auc": SMALL,
    "mu": SMALL,
    "security": SMALL,
    "gradient_square": NEITHER,
    "guesses": NEITHER,
    "posterior": NEITHER,
    "variance": NEITHER,
}
"""Side of the safe truth by the quantity: a large loss, error or p-value, a small utility or refuted mu."""
SAFE_OF = {
    "audit-epsilon": SMALL,
    "audit-dpsgd-epsilon": SMALL,
    "audit-training": SMALL,
    "audit-runs-epsilon": SMALL,
    "audit-ceiling": SMALL,
    "audit-planned-epsilon": SMALL,
    "audit-power": SMALL,
    "label-release-probability": NEITHER,
    "membership-overfitting": NEITHER,
}
"""Problems that differ from this: an audit refutes at least the claims at its safe values."""

UNIT = "a count whose natural unit is 1"
CONVENTION = "all accountants quote add-remove for batches of random size, and every door prints the relation"
PRINTED = "a confidence of 0.95 is printed with the answer"
DECIDED = {
    "epochs": UNIT,
    "participations": UNIT,
    "bags": UNIT,
    "member_weight": "a member counts like a non-member in the accuracy, unless weights are asked for",
    "audit_confidence": PRINTED,
    "confidence_level": PRINTED,
    "run": "an index of independent repetitions",
}
"""Fields with a decided default, by name, with the reason."""
DECIDED_OF = {
    (name, "adjacency"): CONVENTION
    for name in ("poisson-epsilon", "poisson-delta", "unamplified-epsilon", "unamplified-delta")
}
"""Likewise, for one problem each."""
DECIDED_OF |= {
    (f"{scheme}-{asks}", "local_delta"): "an epsilon without a delta is pure differential privacy"
    for scheme in ("response-allocation", "capped-response")
    for asks in ("epsilon", "delta")
}
DECIDED_OF |= {
    (name, "alternatives"): "of all alternatives, 2 (in or out) have the largest p-value"
    for name in ("audit-tail", "audit-gaussian-tail", "audit-claim-tail")
}
DECIDED_OF |= {
    (name, "label_epsilon"): "infinite for the sums of labels without noise, and refused for noise"
    for name in ("label-noise-variance", "label-gradient-square")
}
DECIDED_OF |= {
    ("allocation-renyi", "order_fraction"): "an order is whole, unless a part is asked for",
    ("audit-training", "bug"): "a training without a planted bug refutes the smallest epsilon",
    ("audit-dpsgd-epsilon", "alternatives"): "of all alternatives, 2 (in or out) refute the smallest epsilon",
    ("audit-expected-correct", "alternatives"): "of all alternatives, 2 have the most correct guesses",
    ("audit-power", "family"): "without an assumption about the mechanism, an audit refutes least",
    ("audit-power", "refutation"): "published bounds refute least",
    ("membership-overfitting", "stopping_loss"): "0 never stops a training",
    ("membership-sample-advantage", "odds"): "the advantage is largest at odds 1",
}


KINDS = [kind for kind in PROBLEMS if kind.defaults()]
UNKNOWN = (
    "allocation-renyi",
    "audit-best-guesses",
    "audit-claim-tail",
    "audit-dpsgd-correct",
    "audit-dpsgd-epsilon",
    "audit-expected-correct",
    "audit-gaussian-tail",
    "audit-power",
    "audit-tail",
    "audit-training",
    "label-learning",
    "label-learning-loss",
    "membership-overfitting",
    "membership-sample-advantage",
)
"""Problems whose truth takes long, is bounded from one side, or moves too little at the typical points: all
fields are stated or decided, except fields that may have one value only."""


def truth(problem: Problem) -> tuple[float, float] | None:
    """Return both ends of the truth by cheap methods; None if they give no number."""
    seconds = SLOW.get(problem.name, SECONDS)
    asked = ask(
        problem, limit_seconds=seconds, until=lambda found: found.ok and is_tight(found, CHANGE / 10.0)
    )
    if not asked.ok or (asked.lower, asked.upper) == (0.0, problem.largest):
        return None
    if asked.confidence < 1.0 and asked.upper == problem.largest:  # the end that data give
        return asked.lower, asked.lower
    if asked.confidence < 1.0 and asked.lower == 0.0:
        return asked.upper, asked.upper
    return asked.lower, asked.upper


def points(kind: type[Problem], given: float = 0.0) -> Iterator[Problem]:
    """Yield typical points; a field that may be left out is given with a probability."""
    draw = random.Random(kind.name)
    for _ in range(DRAWS):
        names = [n for n in kind.parameters if n not in kind.defaults() or draw.random() < given]
        fields = {n: FIXED.get(n, draw.choice(list(kind.parameters[n].typical_values()))) for n in names}
        with suppress(DomainError):  # the fields may contradict one another
            yield kind.from_fields(fields)


def others(problem: Problem, name: str) -> Iterator[Problem]:
    """Yield the problems with another typical value of a field that may be left out."""
    for value in problem.others(name):
        with suppress(DomainError):
            yield type(problem).from_fields({**problem.as_fields(), name: value})


def flattering(kind: type[Problem]) -> tuple[set[str], int]:
    """Return the fields whose default is not safe, and the number of points at which this was computed."""
    safe = SAFE_OF.get(kind.name, SAFE[kind.asks])
    found: set[str] = set()
    counted = 0
    for problem in points(kind):
        if counted == (1 if kind.name in SLOW else POINTS):
            break
        if (ends := truth(problem)) is None:
            continue
        counted += 1
        for name in kind.defaults().keys() - found:
            for other in others(problem, name):
                if (moved := truth(other)) is None:
                    continue
                larger = moved[0] > ends[1] * (1.0 + CHANGE)
                smaller = moved[1] < ends[0] * (1.0 - CHANGE)
                if (larger and safe != SMALL) or (smaller and safe != LARGE):
                    found.add(name)
    return found, counted


def decided(kind: type[Problem]) -> set[str]:
    return {name for name in kind.defaults() if name in DECIDED or (kind.name, name) in DECIDED_OF}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", [kind.name for kind in KINDS if kind.name not in UNKNOWN])
def test_a_question_states_every_field_whose_default_is_not_the_safe_value(name: str) -> None:
    kind = find_problem(name)
    found, counted = flattering(kind)
    assert counted, "no point was computed"
    assert found - decided(kind) == set(kind.stated), "unsafe defaults, and fields that a question states"


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_question_of_unknown_truth_states_every_field_that_may_differ(name: str) -> None:
    kind = find_problem(name)
    found = {
        field
        for problem in points(kind, given=0.5)
        for field, default in kind.defaults().items()
        if problem.as_fields()[field] == default and [*others(problem, field)]
    }
    assert found - decided(kind) == set(kind.stated)


def test_no_default_is_the_favourable_end_of_a_proved_trend() -> None:
    seen = set()
    for kind in KINDS:
        safe = SAFE_OF.get(kind.name, SAFE[kind.asks])
        for name in kind.defaults().keys() - kind.stated.keys() - decided(kind) - kind.irrelevant.keys():
            known, parameter = kind.monotone.get(name), kind.parameters[name]
            if known is None:
                continue
            assert isinstance(parameter, Real | Integer)
            most = math.inf if isinstance(parameter, Real) and parameter.infinite else parameter.upper
            grows = known.trend is Trend.INCREASING
            end = most if grows == (safe == LARGE) else parameter.lower
            assert (safe != NEITHER, kind.defaults()[name]) == (True, end), (kind.name, name)
            seen.add(name)
    assert {"label_epsilon", "bag_size", "release_noise"} <= seen


def test_every_decided_default_is_of_a_field_that_exists() -> None:
    names = {(kind.name, name) for kind in KINDS for name in kind.defaults()}
    assert DECIDED.keys() <= {name for _, name in names}
    assert DECIDED_OF.keys() <= names
    assert SAFE_OF.keys() | SLOW.keys() | set(UNKNOWN) <= {kind.name for kind in PROBLEMS}
