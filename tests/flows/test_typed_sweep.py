"""Sweeps that are typed instead of written into a file."""

from pathlib import Path

import pytest

from flows.cli import run
from flows.grid import expand
from flows.typed_sweep import named_or_typed
from privcore import PrivsweepError
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


def test_the_same_words_are_the_same_sweep_whatever_their_order() -> None:
    one = named_or_typed("unamplified-epsilon", ["sigma=1,2", "delta=1e-5"])
    other = named_or_typed("unamplified-epsilon", ["delta=1e-5", "sigma=1,2"])
    assert one.name == other.name
    assert one.digest == other.digest
    assert one.name.startswith("unamplified-epsilon-")


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


def test_what_is_not_covered_comes_with_the_line_that_plans_it_and_running_it_covers_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    words = ["unamplified-epsilon", "sigma=3", "delta=1e-05"]
    open_store(store, create=True).close()
    assert run(["lookup", *words, "--store", store]) == 3
    told = capsys.readouterr().err
    assert "`privsweep plan unamplified-epsilon sigma=3 delta=1e-5 " in told
    line = told.split("`")[1].split()[1:]
    assert run(line) == 0
    assert "1 points, 0 stored, 1 new" in capsys.readouterr().out
    assert run(["run", *line[1:], "--engine", "serial"]) == 0
    capsys.readouterr()
    assert run(["lookup", *words, "--store", store]) == 0
