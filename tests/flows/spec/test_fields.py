"""Examples and batch size in place of steps and sampling probability, in sweeps and in JSON questions."""

import json
from typing import Any

import jsonschema
import pytest

from flows.answers.question import answer_lines
from flows.spec.grid import expand
from flows.spec.schema import schema
from flows.spec.sweep import Sweep, from_spec
from flows.spec.toml import SweepError
from flows.spec.typed import named_or_typed
from privcore import PROBLEMS, DomainError, Trend, answering, find_problem
from privcore.training import MORE_STEPS, TrainingRun, from_sizes, phases, sampler_of

RUN = TrainingRun(examples=1000, batch_size=300, epochs=2)
SIZED = [kind for kind in PROBLEMS if sampler_of(kind)]


def given(kind: type[Any]) -> dict[str, Any]:
    """Return fields of a question that has examples and batch size."""
    typical = {
        name: parameter.typical_values()[0]
        for name, parameter in kind.parameters.items()
        if name not in ("steps", "sampling_probability", "participations")
    }
    order = {"redraw": "each-epoch"} if "redraw" in typical else {}
    return typical | order | {"sigma": 4.0, "examples": 1000, "batch_size": 300, "epochs": 2}


def sweep(kind: type[Any], **changes: Any) -> Sweep:
    product = {name: value for name, value in (given(kind) | changes).items() if value is not None}
    methods = [answering(kind)[0].name]
    grid = {"problem": kind.name, "methods": methods, "product": product}
    return from_spec({"name": "sized", "grid": [grid]}, "sized.toml")


@pytest.mark.parametrize("kind", SIZED, ids=lambda kind: kind.name)
def test_every_sampler_takes_examples_and_batch_size_in_python_and_in_sweeps(kind: type[Any]) -> None:
    sampler = sampler_of(kind)
    assert sampler is not None
    problem = from_sizes(kind, given(kind))
    fields = problem.as_fields()
    assert fields["steps"] == (4 if sampler in MORE_STEPS else 3)
    if "sampling_probability" in fields:
        assert fields["sampling_probability"] == RUN.rate
    assert [point.problem for point in expand(sweep(kind).grids)] == [problem]
    product = {name: [value] for name, value in given(kind).items()}
    spec = {"name": "sized", "grid": [{"problem": kind.name, "methods": ["x"], "product": product}]}
    spec["grid"][0]["methods"] = [answering(kind)[0].name]  # type: ignore[index]
    jsonschema.Draft202012Validator(schema()).validate(spec)


@pytest.mark.parametrize("kind", SIZED, ids=lambda kind: kind.name)
def test_the_rounding_is_safe_for_the_trend_that_is_declared(kind: type[Any]) -> None:
    declared = kind.monotone.get("steps")
    grows = sampler_of(kind) in MORE_STEPS
    assert declared is None or (declared.trend is Trend.INCREASING) is grows


def test_a_condition_can_name_the_sizes_and_what_follows_from_them() -> None:
    grid = {
        "problem": "poisson-epsilon",
        "methods": ["poisson.certified"],
        "product": {"sigma": 1, "delta": 1e-5, "examples": 1000, "batch_size": [10, 20, 30, 500]},
        "where": "steps > 30 and batch_size != 20",
    }
    points = list(expand(from_spec({"name": "sized", "grid": [grid]}, "sized.toml").grids))
    assert [point.problem.as_fields()["steps"] for point in points] == [100, 34]


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("poisson-epsilon", {"steps": 3}, "product: Expected steps or batch_size, got both."),
        ("allocation-epsilon", {"steps": 3}, "product: Expected steps or batch_size, got both."),
        (
            "fixed-size-epsilon",
            {"sampling_probability": 0.1},
            "product: Expected sampling_probability or batch_size, got both.",
        ),
        ("poisson-epsilon", {"examples": None}, "product: Expected values of examples for poisson-epsilon."),
        (
            "allocation-epsilon",
            {"batch_size": None, "steps": 3},
            "product: Expected batch_size together with examples, got examples alone.",
        ),
    ],
)
def test_sizes_and_the_fields_that_they_replace_are_refused_together(
    name: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SweepError) as caught:
        sweep(find_problem(name), **changes)
    assert str(caught.value) == f"sized.toml, grid 1: {sentence}"


def test_a_condition_excludes_sizes_that_are_impossible() -> None:
    for condition in ("batch_size <= examples", "steps > 20 or batch_size <= examples"):
        grid = {
            "problem": "poisson-epsilon",
            "methods": ["poisson.certified"],
            "product": {"sigma": 1, "delta": 1e-5, "examples": [100, 1000], "batch_size": [10, 256]},
            "where": condition,
        }
        made = from_spec({"name": "sized", "grid": [grid]}, "sized.toml")
        if "steps" in condition:
            with pytest.raises(DomainError, match="Expected batch_size <= examples"):
                list(expand(made.grids))
        else:
            assert [point.problem.as_fields()["steps"] for point in expand(made.grids)] == [10, 100, 4]


def test_any_number_of_steps_may_have_a_batch_size_of_its_own() -> None:
    fields = {"sigma": 1, "delta": 1e-5, "adjacency": "zero-out", "examples": 10**13, "batch_size": 1000}
    found = from_sizes(find_problem("fixed-size-epsilon"), fields | {"steps": 5}).as_fields()
    assert (found["steps"], found["sampling_probability"]) == (5, 1e-10)
    with pytest.raises(DomainError, match="Expected steps in"):
        from_sizes(find_problem("fixed-size-epsilon"), fields)


def test_steps_that_all_use_an_example_are_rounded_up() -> None:
    (phase,) = phases("none(sigma=2,examples=1000,batch_size=300)")
    assert phase.uses == 4


def test_only_training_runs_have_sizes() -> None:
    with pytest.raises(SweepError, match=r"product\.batch_size: Unknown key"):
        named_or_typed("unamplified-epsilon", ["sigma=1", "delta=1e-5", "batch_size=2", "examples=3"])


def test_a_batch_of_more_examples_than_there_are_is_refused_at_its_point() -> None:
    made = named_or_typed(
        "poisson-epsilon", ["sigma=1", "delta=1e-5", "examples=100", "batch_size=256"], ["poisson.certified"]
    )
    with pytest.raises(DomainError, match="Expected batch_size <= examples, got batch_size=256"):
        list(expand(made.grids))


def test_a_question_in_json_may_have_examples_and_batch_size() -> None:
    sized = {"sigma": 4, "delta": 1e-5, "examples": 1000, "batch_size": 300}
    explicit = {"sigma": 4, "delta": 1e-5, "steps": 4, "sampling_probability": RUN.rate}
    lines = [json.dumps({"problem": "poisson-epsilon", **fields}).encode() for fields in (sized, explicit)]
    first, second = answer_lines(lines)
    assert first["fields"] == second["fields"]
    assert first["upper"] == second["upper"]
    (alone,) = answer_lines([json.dumps({"problem": "allocation-epsilon", "examples": 3}).encode()])
    assert alone["detail"] == "Expected batch_size together with examples, got examples alone."
