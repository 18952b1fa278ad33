"""Names are unique, well formed, found, and suggested when misspelt."""

import re
import subprocess
import sys

import pytest

from privcore import (
    METHODS,
    PROBLEMS,
    Direction,
    Method,
    Problem,
    UnknownNameError,
    answering,
    find,
    find_problem,
    methods_for,
)
from privcore.parameter import Integer
from privcore.registry import versions
from tests.privcore.draws import problem

each_problem = pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.name)
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def test_the_table_of_stored_names_agrees_with_the_classes() -> None:
    assert METHODS.names == tuple(method.name for method in METHODS)
    assert PROBLEMS.names == tuple(kind.name for kind in PROBLEMS)
    assert set(PROBLEMS) == {kind for method in METHODS for kind in method.problems}
    assert versions() == {method.name: method.version for method in METHODS}


@each_problem
def test_a_problem_is_answered_by_methods_of_its_topic_alone(kind: type[Problem]) -> None:
    assert answering(kind) == [method for method in METHODS if kind in method.problems]


def test_names_and_versions_are_known_before_a_problem_or_a_method_is_imported() -> None:
    script = (
        "import sys\n"
        "from privcore import METHODS, PROBLEMS, registry\n"
        "assert len(METHODS) == len(registry.versions()) and len(PROBLEMS)\n"
        "assert int not in METHODS\n"
        "print([name for name in sys.modules if name.startswith('privcore.') and name.count('.') > 1])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@each_method
def test_a_class_has_the_stored_name_of_its_method_in_camel_case(method: type[Method]) -> None:
    said = method.name.replace(".", "")
    taken = said in {kind.__name__.lower() for kind in PROBLEMS}
    assert method.__name__.lower() == said + "method" * taken


@pytest.mark.parametrize("module", sorted({method.__module__ for method in METHODS}))
def test_a_file_with_one_method_has_its_stored_name(module: str) -> None:
    names = [method.name for method in METHODS if method.__module__ == module]
    file = module.rpartition(".")[2]
    assert len(names) > 1 or file in (names[0].partition(".")[2], names[0].replace(".", "_"))


@each_method
def test_a_method_makes_its_claims(method: type[Method]) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z]+", method.name)
    assert find(method.name) is method
    assert isinstance(method.direction, Direction)
    assert method.reference
    assert method.version >= 1
    assert method.problems
    assert (method.__doc__ or "").strip()
    assert set(method.shares) <= {name for kind in method.problems for name in kind.parameters}
    for kind in method.problems:
        assert set(method.shares) & set(kind.parameters) or not method.shares
    for covered in map(find, method.covers):
        assert set(method.problems) <= set(covered.problems)
    for name, parameter in method.knobs.items():
        assert parameter.check(getattr(method(), name)) == getattr(method(), name)


@each_problem
def test_a_problem_says_what_it_asks(kind: type[Problem]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", kind.name)
    assert find_problem(kind.name) is kind
    assert kind.asks not in kind.parameters
    assert kind.largest > 0.0
    assert (kind.__doc__ or "").strip().endswith(".")
    assert set(kind.monotone) <= set(kind.parameters)
    for monotone in kind.monotone.values():
        assert monotone.proof.endswith(".")


@each_problem
def test_products_and_irrelevant_fields_are_declared_once_and_with_a_proof(kind: type[Problem]) -> None:
    named = [name for axis in kind.products for name in axis.factors] + list(kind.irrelevant)
    assert len(set(named)) == len(named)
    assert all(isinstance(kind.parameters[name], Integer) for axis in kind.products for name in axis.factors)
    proofs = [axis.monotone.proof for axis in kind.products if axis.monotone] + list(kind.irrelevant.values())
    assert len(proofs) == len(kind.products) + len(kind.irrelevant)
    assert all(proof.endswith(".") for proof in proofs)
    compared = [name for axis in kind.lookup_axes() for name in axis.factors]
    assert sorted([*compared, *kind.irrelevant]) == sorted(kind.parameters)


@each_problem
def test_the_topic_of_a_problem_is_the_folder_that_it_lives_in(kind: type[Problem]) -> None:
    assert kind.__module__.startswith(f"privcore.{kind.topic}.")
    assert PROBLEMS.topic(kind.name) == kind.topic


@each_method
def test_a_misspelt_method_is_suggested(method: type[Method]) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean {method.name}?"):
        find(method.name[:-1])


@each_problem
def test_a_misspelt_problem_is_suggested(kind: type[Problem]) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean {kind.name}?"):
        find_problem(kind.name + "x")


def test_a_name_unlike_any_other_gets_the_list() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown method qqq\. Known: allocation\..* more\."):
        find("qqq")
    with pytest.raises(UnknownNameError) as error:
        find_problem("q" * 7000 + "\x1b[2J")
    assert len(str(error.value)) < 1000
    assert str(error.value).isprintable()


def test_methods_for_tells_which_apply_and_why_the_rest_does_not() -> None:
    question = problem("allocation-epsilon", sigma=1.0, steps=10, delta=1e-6, epochs=2)
    reasons = {method.name: reason for method, reason in methods_for(question).items()}
    assert reasons["allocation.certified"] is None
    assert reasons["allocation.dong"] == "The bound is proved for adjacency=remove only."
    assert not any(name.startswith(("poisson.", "unamplified.")) for name in reasons)
