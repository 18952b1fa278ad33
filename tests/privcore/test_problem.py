"""Constraints between fields are declared on the problem, and inherited fields keep their order."""

import re
from string import Formatter
from typing import Any

import pytest

from privcore import PROBLEMS, DomainError, Problem, find_problem
from tests.privcore.draws import problem

BAG: dict[str, Any] = {"bag": "0.2,0.5", "released": 1}
FIT: dict[str, Any] = {"learner": "linear", "records": 9, "loss_level": 0.1, "tested": "train"}
NO_NETWORK = (
    "Expected width=0, iterations=0 and stopping_loss=0 for learner=linear, got width=0, iterations=0, "
    "stopping_loss=0.5."
)
CLASSES = {"classes": "0.2,0.8;0.6,0.4"}

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "allocation-delta",
        {"sigma": 1, "steps": 5, "epsilon": 1, "participations": 6},
        "Expected participations <= steps, got participations=6, steps=5.",
    ),
    (
        "label-advantage",
        {"mechanism": "llp", "prior": "uniform", "label_epsilon": 2},
        "Expected label_epsilon=inf for llp, which adds no noise, got 2.",
    ),
    (
        "label-posterior",
        {"mechanism": "rr", **BAG},
        "Expected a finite label_epsilon for mechanism rr, got inf.",
    ),
    (
        "label-posterior",
        {"mechanism": "rr", "label_epsilon": 1, **BAG},
        "Expected bag_size=1 for mechanism rr, which has no bags, got 2.",
    ),
    (
        "label-posterior",
        {"mechanism": "llp", **BAG, "member": 3},
        "Expected member in {1, ..., 2}, got member=3.",
    ),
    (
        "label-posterior",
        {"mechanism": "llp", **BAG, "released": 0.5},
        "Expected released in {0, ..., 2} for llp, got 0.5.",
    ),
    (
        "class-advantage",
        {"mechanism": "llp-laplace", **CLASSES},
        "Expected mechanism in {none, rr, llp}, got mechanism='llp-laplace'.",
    ),
    (
        "class-advantage",
        {"mechanism": "none", **CLASSES},
        "Expected bag_size=1 for mechanism none, which has no bags, got 2.",
    ),
    (
        "label-learning",
        {"data": "breast-cancer", "mechanism": "none"},
        "Expected a mechanism that releases labels or sums, got mechanism=none.",
    ),
    (
        "membership-accuracy",
        {"law": "uniform(2)", "records": 1, "member_weight": 1e-3, "nonmember_share": 0.9999},
        "Expected nonmember_share / (member_weight (1 - nonmember_share)) in [1e-06, 1e+06], got 9.999e+06.",
    ),
    (
        "membership-overfitting",
        {**FIT, "learner": "network", "coordinates": 3},
        "Expected width >= 1 for learner=network, got width=0.",
    ),
    (
        "membership-overfitting",
        {**FIT, "coordinates": 3, "stopping_loss": 0.5},
        NO_NETWORK,
    ),
    (
        "membership-overfitting",
        {**FIT, "coordinates": 1},
        "Expected coordinates >= 2 for features on a sphere, got coordinates=1.",
    ),
    (
        "membership-quantised-advantage",
        {"clusters": 0, "records": 2},
        "Expected clusters >= 1 for quantised images, got clusters=0.",
    ),
]


@pytest.mark.parametrize(("name", "fields", "sentence"), REFUSED)
def test_fields_that_contradict_one_another_are_refused(
    name: str, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(DomainError, match=f"^{re.escape(sentence)}$"):
        problem(name, **fields)


@pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.name)
def test_a_constraint_compares_and_names_what_its_problem_has(kind: type[Problem]) -> None:
    for constraint in kind.constraints:
        named = {name for _, name, _, _ in Formatter().parse(constraint.message) if name} - {"bound"}
        named |= constraint.names | (constraint.where.names if constraint.where else set())
        assert all(name in kind.parameters or hasattr(kind, name) for name in named), constraint
        assert constraint.message.startswith("Expected ")
        assert constraint.message.endswith(".")


ORDERED = {
    "allocation-epsilon": "sigma steps delta participations epochs adjacency",
    "sampled-allocation-delta": "sigma steps sampling_probability epsilon participations epochs adjacency",
    "laplace-allocation-delta": "scale steps epsilon participations epochs adjacency",
    "poisson-epsilon": "sigma steps sampling_probability delta epochs adjacency",
    "unamplified-epsilon": "sigma delta steps participations epochs adjacency",
    "poisson-error": "epsilon delta steps examples proportion dimension",
    "audit-ceiling": "canaries guesses correct alternatives design delta audit_confidence family",
}


@pytest.mark.parametrize("name", ORDERED)
def test_inherited_fields_keep_the_order_of_the_columns_of_stores(name: str) -> None:
    assert list(find_problem(name).parameters) == ORDERED[name].split()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("allocation-delta", {"sigma": 1, "steps": 5, "epsilon": 1, "participations": 5}),
        ("poisson-error", {"epsilon": 1e-3, "delta": 0.1, "steps": 1, "examples": 9, "proportion": 0.5}),
        ("audit-epsilon", {"canaries": 9, "guesses": 9, "correct": 9, "delta": 1e-5}),
    ],
)
def test_a_field_may_be_equal_to_its_bound(name: str, fields: dict[str, Any]) -> None:
    assert find_problem(name).from_fields(fields).as_fields().items() >= fields.items()
