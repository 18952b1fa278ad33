"""Sweep files: read completely; an error is one sentence with file, line and key."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.spec.grid import count, expand
from flows.spec.sweep import embedded, from_spec, load, parse
from flows.spec.toml import SweepError
from privcore import find
from tasks.guard import Limits
from tests.flows.small_store import Command

GOOD = """\
name = "good"
title = "All that a file can say"

[limits]
point_seconds = 10
point_bytes = 1e9

[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
where = "participations <= steps"

[grid.product]
sigma = [0.5, 1]
steps = {geometric = [10, 1000, 3]}
adjacency = ["add", "remove"]

[grid.zip]
delta = [1e-8, 1e-5]
participations = [1, 20]
"""


def test_a_file_is_read_completely() -> None:
    sweep = parse(GOOD.encode(), "good.toml")
    assert (sweep.name, sweep.title) == ("good", "All that a file can say")
    assert sweep.limits == Limits(point_seconds=10.0, point_bytes=1e9)
    (grid,) = sweep.grids
    assert (grid.problem.name, grid.methods) == ("unamplified-epsilon", (find("unamplified.exact")(),))
    assert count(sweep.grids) == 24
    assert len(list(expand(sweep.grids))) == 20


def test_a_sweep_can_be_read_from_its_spec_again() -> None:
    sweep = parse(GOOD.encode(), "good.toml")
    again = from_spec(sweep.spec, "manifest")
    assert again.digest == sweep.digest
    assert [p.id for p in expand(again.grids)] == [p.id for p in expand(sweep.grids)]


def test_comments_and_spaces_do_not_change_the_digest_but_content_does() -> None:
    spaced = GOOD.replace(" = ", "   =   ").replace("\n\n", "\n# a comment\n")
    assert parse(spaced.encode(), "a").digest == parse(GOOD.encode(), "b").digest
    other = GOOD.replace("0.5", "0.6")
    assert parse(other.encode(), "a").digest != parse(GOOD.encode(), "b").digest


DIGESTS = (
    "f112fd6b791b31e050a015e34b2c618d",
    "29908b4b2cbb4be9ea02d38625bfb584",
    "18eeb77ce3eb95cf6ac6925af2596887",
    "49e5e1fd8628ca6b94bae64d64ac5d3b",
    "4ed61e3f7cfe8dfd4cac50b97eff12a6",
    "70a4139480fb9613fdde611bab3949fb",
    "a5a6bbf96c3c6b35023c1be918ffb3ae",
    "2d3320076a129a2631bf9b8d210288b3",
    "c728b1f2202a667d3cc5282d71840ff9",
)


def test_the_sweeps_of_the_nine_figures_keep_their_stored_names_and_digests() -> None:
    for number, digest in enumerate(DIGESTS, start=1):
        sweep = load(f"allocation-figure{number}")
        assert (sweep.name, sweep.digest) == (f"figure{number}", digest)
        assert load(sweep.name).digest == digest


def test_every_other_embedded_sweep_is_stored_under_the_name_of_its_file() -> None:
    for name, file in embedded().items():
        assert load(name).name == file.stem.removeprefix("allocation-")


def test_a_misspelt_name_lists_every_embedded_sweep_once() -> None:
    with pytest.raises(SweepError, match=r"Known: allocation-figure1, ") as error:
        load("zzz")
    assert len(set(embedded().values())) == str(error.value).count(", ") + 1


def test_the_embedded_quickstart_is_found_by_name() -> None:
    sweep = load("quickstart")
    assert sweep.name == "quickstart"
    assert len(list(expand(sweep.grids))) == count(sweep.grids) < 500


def test_knobs_of_a_method_are_read(tmp_path: Path) -> None:
    text = """
    name = "knobs"
    [[grid]]
    problem = "allocation-epsilon"
    methods = ["allocation.certified", {name = "allocation.certified", tolerance = 0.01}]
    product = {sigma = 1, steps = 10, delta = 1e-5}
    """
    (tmp_path / "knobs.toml").write_text(text)
    methods = load(tmp_path / "knobs.toml").grids[0].methods
    assert [method.identity() for method in methods] == [{}, {"tolerance": 0.01}]


def line(old: str, new: str) -> Callable[[str], str]:
    assert old in GOOD
    return lambda text: text.replace(old, new)


HOSTILE = {
    # changes of the good file: (change, line in the sentence, words in the sentence)
    "broken TOML": (line('name = "good"', 'name = "good'), 1, ["Expected TOML", "line 1"]),
    "a key given twice": (line("[limits]", "title = 'b'\n[limits]"), 4, ["Expected TOML"]),
    "an unknown key": (line("[limits]", "grids = 1\n[limits]"), 4, ["grids", "did you mean grid?"]),
    "an unknown key of a grid": (line("where =", "were ="), 11, ["grid.were", "did you mean where?"]),
    "an unknown limit": (line("point_seconds", "point_second"), 5, ["limits.point_second", "point_seconds?"]),
    "a misspelt parameter": (line("sigma", "sigmma"), 14, ["product.sigmma", "did you mean sigma?"]),
    "a misspelt parameter of zip": (line("delta", "dleta"), 19, ["zip.dleta", "did you mean delta?"]),
    "a string for a number": (line("[0.5, 1]", '["0.5", 1]'), 14, ["product.sigma", "got sigma='0.5'"]),
    "a brace that is not closed": (line("1000, 3]}", "1000, 3]"), 15, ["Expected TOML"]),
    "a boolean": (line("[0.5, 1]", "true"), 14, ["product.sigma", "got sigma=True"]),
    "a boolean among numbers": (line("[0.5, 1]", "[0.5, true]"), 14, ["product.sigma", "got sigma=True"]),
    "a negative number": (line("[0.5, 1]", "[0.5, -1]"), 14, ["product.sigma", "got sigma=-1"]),
    "not a number": (line("[0.5, 1]", "nan"), 14, ["product.sigma", "got sigma=nan"]),
    "infinity": (line("[0.5, 1]", "[1, inf]"), 14, ["product.sigma", "got sigma=inf"]),
    "minus zero": (line("[0.5, 1]", "-0.0"), 14, ["product.sigma"]),
    "a subnormal": (line("1e-8", "1e-320"), 19, ["zip.delta"]),
    "an empty list": (line("[0.5, 1]", "[]"), 14, ["product.sigma", "empty list"]),
    "a nested list": (line("[0.5, 1]", "[[1]]"), 14, ["product.sigma"]),
    "a date": (line("[0.5, 1]", "2026-11-21"), 14, ["product.sigma"]),
    "a number of 5000 digits": (
        line("[0.5, 1]", "0x" + "f" * 5000),
        14,
        ["product.sigma", "too many digits"],
    ),
    "4400 decimal digits": (line("[0.5, 1]", "9" * 4400), None, ["huge numbers"]),
    "no steps": (
        line("{geometric = [10, 1000, 3]}", "0"),
        15,
        ["product.steps: Expected steps in {1, ..., 1000000000}, got steps=0."],
    ),
    "an axis from zero": (line("[10, 1000, 3]", "[0, 1000, 3]"), 15, ["product.steps", "got steps=0"]),
    "a fraction of a step": (line("{geometric = [10, 1000, 3]}", "2.5"), 15, ["product.steps", "steps=2.5"]),
    "delta of one": (line("1e-5]", "1]"), 19, ["zip.delta", "Expected delta in (0, 1)"]),
    "delta of zero": (line("1e-5]", "0]"), 19, ["zip.delta", "Expected delta in (0, 1)"]),
    "a negative delta": (line("1e-5]", "-1e-5]"), 19, ["zip.delta", "Expected delta in (0, 1)"]),
    "a word that is none": (line('"add"', '"substitute"'), 16, ["product.adjacency", "{add-remove"]),
    "a rule for words": (line('["add", "remove"]', "{linear = [1, 2, 3]}"), 16, ["product.adjacency"]),
    "an unknown rule": (line("geometric", "geometrical"), 15, ["did you mean geometric?"]),
    "two rules": (line("3]}", "3], linear = [1, 2, 3]}"), 15, ["product.steps"]),
    "a rule without numbers": (line("[10, 1000, 3]", '"10..1000"'), 15, ["first, last, count"]),
    "a rule of two numbers": (line("[10, 1000, 3]", "[10, 1000]"), 15, ["first, last, count"]),
    "a count of one": (line("1000, 3]", "1000, 1]"), 15, ["count of at least 2"]),
    "a count that is not a number": (line("1000, 3]", "1000, inf]"), 15, ["three finite numbers"]),
    "a fraction of a count": (line("1000, 3]", "1000, 2.5]"), 15, ["count of at least 2"]),
    "a falling axis": (line("[10, 1000, 3]", "[1000, 10, 3]"), 15, ["first value below the last"]),
    "a step of zero": (line("geometric = [10, 1000, 3]", "range = [10, 20, 0]"), 15, ["step", "> 0"]),
    "half a step": (line("geometric = [10, 1000, 3]", "range = [1, 2, 0.5]"), 15, ["whole number"]),
    "unequal lengths": (line("[1, 20]", "[1]"), 18, ["zip", "2 of delta, 1 of participations"]),
    "a parameter twice": (line("[1, 20]", "[1, 2]\nsigma = [1, 2]"), 21, ["zip.sigma", "in product too"]),
    "a missing parameter": (line("sigma = [0.5, 1]", ""), 13, ["sigma for unamplified-epsilon"]),
    "an unknown problem": (line("unamplified-epsilon", "unamplified-epsilo"), 9, ["unamplified-epsilon?"]),
    "no problem": (line('problem = "unamplified-epsilon"', ""), 8, ["problem", "got nothing"]),
    "an unknown method": (line("unamplified.exact", "unamplified.exakt"), 10, ["unamplified.exact?"]),
    "a method for another problem": (line("unamplified.exact", "poisson.pld"), 10, ["does not answer"]),
    "an unknown option": (
        line('["unamplified.exact"]', '[{name = "unamplified.exact", speed = 2}]'),
        10,
        ["methods", "speed"],
    ),
    "a method twice": (line('exact"]', 'exact", "unamplified.exact"]'), 10, ["methods", "twice"]),
    "no method": (line('["unamplified.exact"]', "[]"), 10, ["methods"]),
    "a number for a method": (line('["unamplified.exact"]', "[1]"), 10, ["methods"]),
    "no grid": (lambda text: text.split("[[grid]]")[0], None, ["grid", "at least one"]),
    "a grid that is not a table": (
        lambda text: text.split("[[grid]]")[0].replace("[lim", "grid=[1]\n[lim"),
        None,
        ["grid"],
    ),
    "a condition that is code": (line("participations <= steps", "exit()"), 11, ["where"]),
    "a condition that imports": (line("participations <= steps", "__import__('os').abort()"), 11, ["where"]),
    "a condition on nothing": (line("<= steps", "<= stepps"), 11, ["where", "Did you mean steps?"]),
    "a condition that is a number": (line('"participations <= steps"', "1"), 11, ["where", "in quotes"]),
    "a condition that divides by zero": (line("<= steps", "/ (steps - 10) > 0"), 9, ["division by zero"]),
    "participations above steps": (
        line("where =", "#"),
        9,
        ["Expected participations <= steps", "=20, steps=10"],
    ),
    "nothing left": (line("participations <=", "10000 <"), 9, ["leaves points"]),
    "no name": (line('name = "good"', ""), None, ["name"]),
    "a path for a name": (line('"good"', '"../../etc/passwd"'), 1, ["name", "lower-case letters"]),
    "a name with NUL": (line('"good"', '"go\\u0000od"'), 1, ["name"]),
    "a name of 300 letters": (line('"good"', f'"{"g" * 300}"'), 1, ["name", "1 to 64 lower-case letters"]),
    "a title of several lines": (line('"All that', '"\\nAll that'), 2, ["title", "one line", "All that"]),
    "a title of 201 letters": (line('"All that', f'"{"t" * 201}'), 2, ["title", "at most 200"]),
    "a limit of nothing": (line("point_seconds = 10", "point_seconds = 0"), 5, ["limits.point_seconds"]),
    "a limit in words": (line("point_bytes = 1e9", 'point_bytes = "1 GB"'), 6, ["limits.point_bytes"]),
    "deep nesting": (line("[0.5, 1]", "[" * 5000 + "]" * 5000), None, ["nesting"]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_with_one_sentence_and_exit_code_two(
    case: str, tmp_path: Path, privsweep: Command
) -> None:
    change, number, words = HOSTILE[case]
    Path("hostile.toml").write_text(change(GOOD))
    for command in ("plan", "run"):
        assert privsweep(command, "hostile.toml", "--store", "store") == 2
        out, err = (privsweep.out, privsweep.err)
        assert not out
        assert err.count("\n") == 1, err
        assert err.startswith("privsweep: hostile.toml")
        assert len(err) < 400
        assert all(word in err for word in words), err
        assert number is None or f"line {number}" in err, err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hostile.toml"], "nothing was started or written"


@pytest.mark.parametrize(
    "reference", ["missing.toml", "quickstrat", ".", "a\0b", "x" * 5000, "", "/dev/null", "../quickstart"]
)
def test_a_sweep_that_is_not_there_is_one_sentence(reference: str, privsweep: Command) -> None:
    assert privsweep("plan", reference) == 2
    err = privsweep.err
    assert err.count("\n") == 1, err
    assert repr(reference)[1:-1][:9] in err


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(SweepError, match=r"latin\.toml: Expected TOML in UTF-8"):
        parse("name = 'é'".encode("latin-1"), "latin.toml")


def test_an_infinite_value_can_be_recorded_and_read_again() -> None:
    text = b"""
name = "unbounded"
[[grid]]
problem = "label-advantage"
methods = ["labels.composition"]
product = {mechanism = "llp", prior = "point(0.5)", bag_size = 2, label_epsilon = [inf]}
"""
    sweep = parse(text, "unbounded.toml")
    again = from_spec(json.loads(json.dumps(sweep.spec, allow_nan=False)), "manifest")
    assert again.digest == sweep.digest
    assert list(expand(again.grids)) == list(expand(sweep.grids))


def test_a_text_of_several_lines_is_the_sweep_itself() -> None:
    file = embedded()["quickstart"]
    assert load(file.read_text()).digest == load("quickstart").digest
    with pytest.raises(SweepError, match=r"^the text of the sweep: Expected TOML, got: "):
        load("name =\n")
