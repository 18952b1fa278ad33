"""With an unknown sampler, the answer holds for every sampler of `compare`, and the worst one is named."""

import random
from pathlib import Path
from typing import Any

import pytest

import privsweep as ps
from flows.answers.ask import UncoveredError
from flows.answers.parse import DROP_LAST, LOADERS, SAMPLING, loader
from flows.answers.training.any_sampler import any_sampler
from flows.answers.training.compare import SchemeRow, problems
from flows.answers.training.noise import NoiseForAny, find_noise
from privcore import Bracket, find_problem
from tests.flows.small_store import Command, point, store_of

pytestmark = [pytest.mark.sampled(6), pytest.mark.xdist_group("any")]  # they share brackets

RUN = ("--sigma", 1.1, "--steps", 100, "--delta", 1e-5)
SAID = {"problem", "fields", "lower", "upper", "adjacency"}


def drawn_runs(count: int) -> list[dict[str, Any]]:
    """Return the options of runs by name; half of them have examples and a batch size in place of steps.

    Only the first of those has many steps, for which comparisons with sizes take half a minute.
    """
    draw = random.Random(44)
    runs = []
    for k in range(count):
        batch = draw.choice([10, 50, 200])
        steps = draw.randint(2, 60)
        steps = steps if k == 1 else 2 + steps % 4
        sizes: dict[str, Any] = {"examples": batch * steps + 1, "batch_size": batch}
        run = sizes if k % 2 else {"steps": draw.choice([1, 2, 10, 100])}
        run |= {"epochs": draw.choice([1, 3]), "delta": float(f"{10 ** draw.uniform(-7, -3):.3g}")}
        run |= {"adjacency": draw.choice(["add-remove", "zero-out", "replace-one", "remove"])}
        runs.append(run | {"sigma": float(f"{10 ** draw.uniform(-0.2, 0.5):.3g}")})
    return runs


def words_of(run: dict[str, Any]) -> list[str]:
    return [word for name, value in run.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.mark.parametrize("run", drawn_runs(8), ids=str)
def test_the_bracket_holds_for_every_sampler_and_names_the_worst(
    privsweep: Command, run: dict[str, Any]
) -> None:
    assert privsweep("epsilon", *words_of(run), "--sampling", "unknown", "--json") == 0, privsweep.err
    whole = privsweep.json
    assert privsweep("compare", *words_of(run), "--json") == 0
    rows = {row["sampling"]: row for row in privsweep.json["rows"] if row["problem"]}
    assert len(rows) >= 4
    assert [row["sampling"] for row in whole["rows"]] == list(rows)
    shown = {row["sampling"]: row for row in whole["rows"]}
    if "examples" in run and "shuffling" in rows:  # the sizes, which take long, change no end of the answer
        sized = rows.pop("shuffling")
        rows["shuffling"] = unsized = shown["shuffling"]
        assert unsized["lower"] <= sized["upper"] <= unsized["upper"]
    for name, row in shown.items():
        assert {key: row[key] for key in SAID} == {key: rows[name][key] for key in SAID}
    assert whole["lower"] == rows[whole["best"]]["lower"] == min(row["lower"] for row in rows.values())
    assert whole["upper"] == rows[whole["worst"]]["upper"] == max(row["upper"] for row in rows.values())
    assert (whole["sampling"], whole["status"], whole["confidence"]) == ("unknown", "ok", 1.0)
    assert whole["kind"] == "enclosure, proved"
    for name in ("allocation", "none"):
        assert privsweep("epsilon", *words_of(run), "--sampling", name, "--json") == 0
        assert whole["lower"] <= privsweep.json["lower"] <= privsweep.json["upper"] <= whole["upper"]
    found = ps.epsilon(**run, sampling="unknown")
    assert (found.lower, found.upper, found.worst) == (whole["lower"], whole["upper"], whole["worst"])
    assert {name: (one.lower, one.upper) for name, one in found.samplers.items()} == {
        name: (row["lower"], row["upper"]) for name, row in rows.items()
    }


def test_the_worst_sampler_is_not_always_that_without_amplification(privsweep: Command) -> None:
    """With few steps, batches that are drawn in each step may use an example more often than once."""
    words = ("--sigma", 0.5, "--steps", 2, "--delta", 1e-7, "--sampling", "unknown", "--json")
    assert privsweep("epsilon", *words) == 0
    assert privsweep.json["worst"] == "fixed-size"


def test_the_loader_of_the_worst_sampler_and_every_relation_are_printed(privsweep: Command) -> None:
    words = ("epsilon", *RUN, "--epochs", 2, "--sampling", "unknown")
    worst = privsweep.told(*words)["worst"]
    assert privsweep(*words) == 0
    head, named, *_ = privsweep.out.splitlines()
    assert head.startswith("epsilon in [")
    assert head.endswith("] for every sampler below")
    assert named == f"worst      {worst}: {LOADERS[worst]}"
    assert "zero-out" in privsweep.out
    found = ps.epsilon(sigma=1.1, steps=100, delta=1e-5, epochs=2, sampling="unknown")
    for text in (str(found), found._repr_html_()):
        assert LOADERS[worst] in text
        assert "zero-out" in text
        assert "add-remove" in text


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--redraw", "once"), 2, "Expected no redraw with sampling unknown"),
        (("--sampling-probability", 0.1), 2, "Expected no sampling_probability with sampling unknown"),
        (("--largest-batch", 9), 2, "Expected no largest_batch with sampling unknown"),
        (("--method", "poisson.certified"), 2, "Expected no --method and no --statement"),
        (("--statement", "text"), 2, "Expected no --method and no --statement"),
        (("--limit-seconds", 0), 4, "since poisson has no bracket: Not started"),
        (("--stored-only",), 3, "since poisson has no bracket: nothing is stored."),
    ],
)
def test_nothing_is_said_about_every_sampler_if_one_has_no_bracket(
    privsweep: Command, tmp_path: Path, words: tuple[object, ...], code: int, reason: str
) -> None:
    """A store with one sampler does not answer for all of them."""
    stored = point("allocation-epsilon", "allocation.certified", sigma=1.1, steps=100, delta=1e-5)
    store = store_of(tmp_path / "small", [stored])
    assert privsweep("epsilon", *RUN, "--sampling", "unknown", "--store", store, *words) == code
    assert reason in privsweep.err
    assert privsweep.out == ""


def test_every_sampler_of_a_comparison_has_a_loader() -> None:
    found = ps.compare(sigma=2.0, examples=1000, batch_size=400, epochs=2, delta=1e-5)
    assert set(found) <= {*SAMPLING, DROP_LAST}
    assert set(SAMPLING) == set(LOADERS)
    assert all(loader(sampling).startswith(f"{sampling}: ") for sampling in found)


def test_a_loader_that_drops_the_last_batch_may_be_the_worst(privsweep: Command) -> None:
    """If an example is removed, another takes its place, so a sum changes by twice as much."""
    sizes = ("--examples", 2 * 10**9 + 1, "--batch-size", 10**9)  # too many for draws with replacement
    words = ("--sigma", 2, *sizes, "--delta", 1e-5, "--sampling", "unknown")
    assert privsweep("epsilon", *words) == 0
    assert "worst      shuffling-drop-last: DataLoader(shuffle=True, drop_last=True)" in privsweep.out
    assert privsweep("noise", "--epsilon", 2, *words[2:]) == 0
    assert "worst      shuffling-drop-last: " in privsweep.out


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_shuffling_covers_a_missing_answer_about_dropped_batches(relation: str) -> None:
    assert len(any_sampler(rows_without_dropped(relation)).rows) == len(rows_without_dropped(relation)) - 1


def test_with_add_remove_a_missing_answer_about_dropped_batches_leaves_none_for_every_sampler() -> None:
    """It may be the largest, and the row of shuffling is about another relation."""
    with pytest.raises(UncoveredError, match="shuffling-drop-last has no bracket"):
        any_sampler(rows_without_dropped("add-remove"))


def rows_without_dropped(relation: str) -> list[SchemeRow]:
    """The rows of a run, with any brackets, and without one for batches that are dropped."""
    sizes = {"examples": 1000, "batch_size": 300, "sigma": 2.0, "delta": 1e-5, "adjacency": relation}
    asked, _ = problems(sizes)
    return [
        SchemeRow(sampling=name, problem=problem, status="missing", notes=("It is not stored.",))
        if name == DROP_LAST
        else SchemeRow(sampling=name, problem=problem, bracket=Bracket(lower=0.5, upper=2.0))
        for name, problem in asked.items()
    ]


# ------------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize(("target", "run"), [*zip((0.5, 8.0), drawn_runs(2), strict=True)], ids=str)
def test_the_noise_suffices_for_every_sampler_and_less_does_not_for_one(
    privsweep: Command, target: float, run: dict[str, Any]
) -> None:
    given = {name: value for name, value in run.items() if name != "sigma"}
    words = (*words_of(given), "--sampling", "unknown", "--json")
    assert privsweep("noise", "--epsilon", target, *words) == 0, privsweep.err
    found = privsweep.json
    assert privsweep("epsilon", "--sigma", found["sigma"], *words) == 0
    whole = privsweep.json
    assert whole["upper"] <= target
    assert {row["sampling"]: row["adjacency"] for row in whole["rows"]} == found["relations"]
    worst = next(row for row in whole["rows"] if row["sampling"] == found["worst"])
    assert (worst["problem"], worst["fields"]) == (found["problem"], found["fields"])
    assert privsweep("epsilon", "--sigma", found["sigma_short"], *words) == 0
    assert privsweep.json["upper"] > target
    assert found["lower_short"] > target
    public = next(row for row in whole["rows"] if row["sampling"] == "none")
    fields = {name: value for name, value in public["fields"].items() if name != "sigma"}
    alone = find_noise(find_problem(public["problem"]), fields, target).short_sigma
    assert alone is not None
    assert found["sigma_short"] >= alone, "noise that is too little for one sampler is too little for all"
    again = ps.noise(epsilon=target, **given, sampling="unknown")
    assert isinstance(again, NoiseForAny)
    assert (again.sigma, again.short_sigma) == (found["sigma"], found["sigma_short"])
    assert (again.worst, again.relations) == (found["worst"], found["relations"])


def test_the_noise_names_the_loader_of_the_worst_sampler(privsweep: Command) -> None:
    words = ("--epsilon", 4, "--steps", 2, "--delta", 1e-5, "--sampling")
    assert privsweep("noise", *words, "unknown") == 0
    assert f"worst      fixed-size: {LOADERS['fixed-size']}" in privsweep.out
    assert "holds for  allocation, poisson, none (add-remove)" in privsweep.out
    assert "holds for  fixed-size, shuffling (zero-out)" in privsweep.out
    html = ps.noise(epsilon=4.0, steps=2, delta=1e-5, sampling="unknown")._repr_html_()
    assert f"for every sampler; worst fixed-size: {LOADERS['fixed-size']}" in html
    assert privsweep("noise", *words, "unknown", "--method", "poisson.certified") == 2
    assert privsweep("noise", *words, "unknown", "--redraw", "once") == 2


# ----------------------------------------------------------------------------------------------- profile


@pytest.mark.parametrize("run", drawn_runs(2), ids=str)
def test_every_number_of_a_profile_holds_for_every_sampler(privsweep: Command, run: dict[str, Any]) -> None:
    given = {name: value for name, value in run.items() if name != "delta"} | {"adjacency": "add-remove"}
    assert privsweep("profile", *words_of(given), "--sampling", "unknown", "--json") == 0, privsweep.err
    whole = privsweep.json
    samplers = whole["samplers"]
    assert {"allocation", "poisson", "fixed-size", "none"} <= set(samplers)
    assert samplers["poisson"]["adjacency"] == "add-remove"
    assert samplers["fixed-size"]["adjacency"] == "zero-out"
    assert whole["adjacency"].startswith("add-remove (zero-out for fixed-size")
    for k, line in enumerate(whole["profile"]):
        each = {name: profile["profile"][k] for name, profile in samplers.items()}
        assert {(one["quantity"], str(one["at"])) for one in each.values()} == {
            (line["quantity"], str(line["at"]))
        }
        assert line["lower"] == min(one["lower"] for one in each.values())
        assert line["upper"] == max(one["upper"] for one in each.values())
        end = "lower" if line["quantity"] == "false_positive_rate" else "upper"
        assert line[end] == each[line["worst"]][end]
    for k, power in enumerate(whole["curve"]):
        ends = [profile["curve"][k] for profile in samplers.values()]
        assert power["lower"] == min(one["lower"] for one in ends)
        assert power["upper"] == max(one["upper"] for one in ends)
    assert privsweep("profile", *words_of(given), "--sampling", "none", "--json") == 0
    assert privsweep.json["profile"] == samplers["none"]["profile"]


def test_a_profile_names_the_worst_sampler_in_its_table_and_draws_the_ends_of_all(
    privsweep: Command, tmp_path: Path
) -> None:
    words = ("profile", "--sigma", 1, "--steps", 2, "--delta", 1e-5, "--sampling", "unknown")
    assert privsweep(*words, "--chart", tmp_path / "curve.svg") == 0
    title, names, first, *_ = privsweep.out.splitlines()
    assert title.startswith(
        "any of allocation, poisson, fixed-size, shuffling, none adjacency=add-remove (zero"
    )
    assert names.split() == ["quantity", "at", "lower", "upper", "worst"]
    assert first.split()[-1] == "fixed-size"
    assert (tmp_path / "curve.svg").exists()
    assert privsweep(*words, "--redraw", "once") == 2
