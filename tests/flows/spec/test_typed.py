"""Sweeps that are typed instead of written into a file."""

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.spec.grid import expand
from flows.spec.sweep import embedded_names, load
from flows.spec.toml import SweepError
from flows.spec.typed import _axis, named_or_typed
from privcore import PROBLEMS, PrivsweepError
from privcore.membership.params import LAW
from privcore.parameter import Value
from storage import open_store


def points(*words: str, methods: tuple[str, ...] = ()) -> list[dict[str, Value]]:
    return [point.problem.as_fields() for point in expand(named_or_typed(words[0], words[1:], methods).grids)]


def test_commas_separate_values_and_rules_make_them() -> None:
    found = points("unamplified-epsilon", "sigma=geometric(1,100,3)", "delta=1e-5,1e-6")
    assert [(fields["sigma"], fields["delta"]) for fields in found] == [
        (sigma, delta) for sigma in (1.0, 10.0, 100.0) for delta in (1e-5, 1e-6)
    ]


def test_a_comma_in_a_law_separates_nothing() -> None:
    found = points("label-advantage", "mechanism=llp", "prior=beta(2,30), uniform", "bag_size=4")
    assert [fields["prior"] for fields in found] == ["beta(2,30)", "uniform"]


def test_a_list_that_is_one_value_stays_whole_as_in_a_lookup() -> None:
    words = ["label-posterior", "mechanism=llp", "member=1", "released=1"]
    assert [fields["bag"] for fields in points(*words, "bag=0.2,0.5,0.8")] == ["0.2,0.5,0.8"]


def test_parentheses_within_parentheses_hold_their_commas_together() -> None:
    assert _axis("mixed(0.3,atoms(0.6,0.3,0.1)), uniform(10)", LAW) == [
        "mixed(0.3,atoms(0.6,0.3,0.1))",
        "uniform(10)",
    ]
    assert _axis("mixed(0.3,atoms(0.6,0.3,0.1))", LAW) == ["mixed(0.3,atoms(0.6,0.3,0.1))"]


def test_a_limit_without_a_bound_can_be_typed_and_stands_in_a_manifest() -> None:
    words = ["label-advantage", "mechanism=llp", "prior=uniform", "bag_size=2", "label_epsilon=inf"]
    assert [fields["label_epsilon"] for fields in points(*words)] == [math.inf]
    assert '"inf"' in json.dumps(named_or_typed(words[0], words[1:]).spec, allow_nan=False)


def test_the_same_words_are_the_same_sweep_whatever_their_order() -> None:
    one = named_or_typed("unamplified-epsilon", ["sigma=1,2", "delta=1e-5"])
    other = named_or_typed("unamplified-epsilon", ["delta=1e-5", "sigma=1,2"])
    assert one.name == other.name
    assert one.digest == other.digest
    assert one.name.startswith("unamplified-epsilon-")


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["mechanism=rr", "prior=uniform", "label_epsilon=1"], ["labels.response"]),
        (["mechanism=llp", "prior=point(0.1)", "bag_size=4"], ["labels.composition"]),
        (
            ["mechanism=llp", "prior=uniform,point(0.1)", "bag_size=4"],
            ["labels.cells", "labels.composition"],
        ),
    ],
)
def test_the_methods_are_those_that_apply_to_the_points(words: list[str], chosen: list[str]) -> None:
    (grid,) = named_or_typed("label-advantage", words).grids
    assert [method.name for method in grid.methods] == chosen


def test_where_nothing_proves_both_ends_all_that_bound_one_are_taken() -> None:
    words = ["sigma=1", "steps=10", "delta=1e-5", "adjacency=zero-out"]
    (grid,) = named_or_typed("shuffling-epsilon", words).grids
    assert [method.name for method in grid.methods] == [
        "shuffling.clones",
        "shuffling.composed",
        "shuffling.largest",
    ]


def test_the_method_is_the_first_that_encloses_unless_others_are_named() -> None:
    words = ["sigma=1", "steps=10", "delta=1e-5"]
    (grid,) = named_or_typed("allocation-epsilon", words).grids
    assert [method.name for method in grid.methods] == ["allocation.certified"]
    (grid,) = named_or_typed("allocation-epsilon", words, ["allocation.dong", "allocation.analytic"]).grids
    assert [method.name for method in grid.methods] == ["allocation.dong", "allocation.analytic"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["quickstart", "sigma=1"], "Expected the name of a problem before sigma=1, got 'quickstart'."),
        (["unamplified-epsilon", "sigma=1"], "Expected values of delta for unamplified-epsilon."),
        (["unamplified-epsilon", "sigma"], "Expected field=value, got 'sigma'."),
        (["unamplified-epsilon", "sigma=1", "sigma=2"], "Expected each field once, got sigma twice."),
        (["unamplified-epsilon", "sigma=-1", "delta=1e-5"], "got sigma=-1"),
        (["unamplified-epsilon", "sigma=1,,2", "delta=1e-5"], "got sigma=''"),
        (["unamplified-epsilon", "sigma=linear(1,2)", "delta=1e-5"], "first, last, count"),
        (["unamplified-epsilon", "colour=1", "sigma=1", "delta=1e-5"], "colour"),
    ],
)
def test_mistakes_are_told_in_one_sentence(words: list[str], complaint: str) -> None:
    with pytest.raises(PrivsweepError) as error:
        named_or_typed(words[0], words[1:])
    assert complaint in str(error.value)


@pytest.mark.thorough
def test_what_is_not_covered_comes_with_the_line_that_plans_it_and_running_it_covers_it(
    tmp_path: Path, process: Callable[..., tuple[int, str, str]]
) -> None:
    store = str(tmp_path / "store")
    question = ["lookup", "unamplified-epsilon", "sigma=3", "delta=1e-05", "--store", store]
    open_store(store, create=True).close()
    code, _, told = process(*question)
    assert code == 3
    assert "`privsweep plan unamplified-epsilon sigma=3 delta=1e-5 " in told
    line = shlex.split(told.split("`")[1])[1:]
    code, out, err = process(*line)
    assert (code, err) == (0, "")
    assert "1 points, 0 stored, 1 new" in out
    assert process("run", *line[1:], "--engine", "serial")[0] == 0
    assert process(*question)[0] == 0


def test_a_name_of_a_sweep_and_of_a_problem_means_the_sweep_unless_fields_follow() -> None:
    both = {kind.name for kind in PROBLEMS} & set(embedded_names())
    assert "membership-overfitting" in both
    for name in both:
        assert named_or_typed(name, []).name == load(name).name
        with pytest.raises(SweepError, match=r"^command line, grid 1: product\.x: Unknown key"):
            named_or_typed(name, ["x=2"])
