"""Fields of the grids of a problem: its parameters, and the numbers that can replace some of them."""

from collections.abc import Collection, Mapping
from typing import Any

from privcore.parameter import Parameter
from privcore.problem import Problem
from privcore.training import SIZES, clash, sampler_of, with_steps

REPLACED = ("steps", "sampling_probability")
"""Fields that examples and batch size can replace."""


def fields_of(problem: type[Problem]) -> dict[str, Parameter]:
    """Return the fields that a grid of a problem may have: its own, then examples and batch size."""
    sizes = SIZES if sampler_of(problem) else {}
    return {
        **problem.parameters,
        **{name: each for name, each in sizes.items() if name not in problem.parameters},
    }


def missing(problem: type[Problem], given: Collection[str]) -> list[str]:
    """Return the required fields of a problem that a grid with these fields does not have."""
    replaced = REPLACED if sampler_of(problem) and "batch_size" in given else ()
    optional = {*problem.defaults(), *replaced, *given}
    if replaced and "examples" not in given:
        return ["examples"]
    return [name for name in problem.parameters if name not in optional]


def contradiction(problem: type[Problem], given: Collection[str]) -> str | None:
    """Return a sentence if a grid has examples, batch size and the fields that they replace; or None."""
    sampler = sampler_of(problem)
    return clash(sampler, problem.parameters, given) if sampler and SIZES.keys() & set(given) else None


def are_own(problem: type[Problem], given: Collection[str]) -> bool:
    """Return whether these fields of a grid are fields of its problems; others determine steps."""
    return sampler_of(problem) is None or "batch_size" not in given


def problem_fields(problem: type[Problem], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a problem, with those that examples and batch size determine.

    Raises:
        DomainError: Fields contradict one another.
    """
    sampler = sampler_of(problem)
    if sampler is None or are_own(problem, fields):
        return dict(fields)
    return with_steps(sampler, problem.parameters, fields)
