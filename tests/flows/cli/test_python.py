"""Every question at both doors: the options of a command are the arguments of the function of its name."""

import inspect
import io
import json
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars
import pytest

import privsweep as ps
from flows.cli.app import COMMANDS
from flows.cli.training import RUN
from privcore import Answer, LimitError
from privcore.errors import ExitCode
from privsweep.words import RunWords
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, put, row

ASKING = (
    "epsilon",
    "noise",
    "solve",
    "profile",
    "compare",
    "steps",
    "labels",
    "audit",
    "membership",
    "ask",
    "methods",
    "plan",
    "run",
    "lookup",
    "sql",
)
"""Commands that answer; the others maintain a store, serve or write files."""
OUTPUT = {"json", "csv", "explain", "statement", "chart", "everything", "batch"}
"""Options about the output: Python has reports, `frame`, `plot` and `Enclosure.statement`."""
WORDS = {"words": "fields", "name": "problem", "neighbours": "adjacency", "file": "query"}
"""Words of a command line that have another form in Python; `neighbours` is an earlier name."""
NOTEBOOK = {"progress"}
"""Arguments that only Python needs."""


def options(command: str) -> set[str]:
    module, _, function = COMMANDS[command][0].partition(":")
    found = inspect.signature(getattr(import_module(f"flows.cli.{module}"), function)).parameters
    return {WORDS.get(name, name) for name in found} - OUTPUT


@pytest.mark.parametrize("command", ASKING)
def test_options_of_a_command_are_the_arguments_of_its_function(command: str) -> None:
    arguments = set(inspect.signature(getattr(ps, command)).parameters) - NOTEBOOK
    same = {"methods": {"problem": "name"}}.get(command, {})
    assert {same.get(name, name) for name in options(command)} == arguments


def test_a_run_has_the_same_words_at_both_doors() -> None:
    assert set(RUN) == set(RunWords.__annotations__)
    assert len(RUN) > 10


def test_one_function_turns_words_into_a_problem(repository: Path) -> None:
    reader = re.compile(r"\b(from_sizes|with_sizes|completed)\(")
    files = [file for name in ("flows", "privsweep") for file in (repository / name).rglob("*.py")]
    reading = {file.name for file in files if reader.search(file.read_text(encoding="utf-8"))}
    assert reading == {"question.py", "parse.py"}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sampling": "shuffling", "sigma": 1, "steps": 10}, "Expected adjacency"),
    (
        {"sampling": "shuffling", "sigma": 1, "steps": 10, "group": 2, "adjacency": "zero-out"},
        "Expected group",
    ),
    ({"sampling": "none", "sigma": 1, "workers": 8}, "Expected no workers"),
    ({"sigma": 1}, "Expected sampling, since"),
]


@pytest.mark.parametrize(("words", "told"), WRONG)
def test_errors_have_the_words_of_python(words: dict[str, Any], told: str) -> None:
    with pytest.raises(ps.DomainError, match=told) as caught:
        ps.epsilon(delta=1e-5, **words)
    assert "--" not in str(caught.value)


def test_an_argument_that_does_not_exist_is_named_with_the_closest_one() -> None:
    wrong: dict[str, Any] = {"sample_rates": 0.1}
    with pytest.raises(TypeError, match="'sample_rates'; did you mean 'sample_rate'"):
        ps.epsilon(sampling="poisson", **wrong)
    both: dict[str, Any] = {"sigma": 1, "noise_multiplier": 1}
    with pytest.raises(TypeError, match="which are the same"):
        ps.epsilon(sampling="none", **both)


def test_words_of_other_libraries_mean_the_same() -> None:
    words: dict[str, Any] = {"noise_multiplier": 1, "sample_rate": "1/100", "target_delta": "1/100000"}
    found = ps.epsilon(sampling="poisson", steps=100, max_grad_norm=3.0, **words)
    same = ps.epsilon(sampling="poisson", sigma=1, sampling_probability=0.01, delta=1e-5, steps=100)
    assert found.problem == same.problem
    assert "max_grad_norm does not matter" in found.notes[-1]


NONE: dict[str, Any] = {"sampling": "none", "sigma": 2.0}
ANY: dict[str, Any] = {"sampling": "unknown", "sigma": 1.0, "steps": 10}
ONE: dict[str, Any] = {"sigma": 1.0, "delta": 1e-5}
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: ps.epsilon(sampling="none", sigma=[1, None], delta=1e-5), "in each place of sigma, got None"),
    (lambda: ps.Run(**NONE).delta(None), "Expected a number for epsilon"),
    (lambda: ps.Run(**NONE).tpr(None), "Expected a number for false_positive_rate"),
    (lambda: ps.Run(**NONE).fpr(None), "Expected a number for true_positive_rate"),
    (lambda: ps.profile(fpr=cast(Any, None), **NONE), "Expected a number for false_positive_rate"),
    (lambda: ps.audit(roc={"fpr": [], "tpr": []}, runs=(9, 9), delta=1e-5), "at least one threshold"),
    (lambda: ps.solve(cast(Any, None), epsilon=1, delta=1e-5, **NONE), "to solve for, got None"),
    (lambda: ps.solve(cast(Any, 3), epsilon=1, delta=1e-5, **NONE), "to solve for, got 3"),
    (lambda: ps.epsilon(method=cast(Any, [3]), delta=1e-5, **NONE), "Unknown method 3"),
    (lambda: ps.epsilon(method=cast(Any, 3), delta=1e-5, **NONE), "Unknown method 3"),
    (lambda: ps.profile(**NONE).plot("p.txt"), "Expected a chart in a file .png"),
    (lambda: ps.noise(sampling="none", advantage=0), "Expected advantage in"),
    (lambda: ps.noise(sampling="none", advantage="10%"), "Expected advantage in"),
    (
        lambda: ps.audit(counts=(20, 10, 9), design="independent", delta=1e-5, claim="foo"),
        "Expected claim",
    ),
    (lambda: ps.Run(**ANY).delta(1.0), "Expected a known sampler"),
    (lambda: ps.Run(**ANY).advantage(), "Expected a known sampler"),
    (lambda: ps.solve("epochs", epsilon=1, delta=1e-5, **ANY), "Expected a known sampler"),
    (lambda: ps.run("unamplified-epsilon", engine="foo", **ONE), "Expected engine auto, ray or serial"),
    (lambda: ps.run("unamplified-epsilon", workers=-1, **ONE), "Expected workers in"),
    (lambda: ps.plan("unamplified-epsilon", workers=-1, **ONE), "Expected workers in"),
]


@pytest.mark.parametrize(("asked", "told"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_an_argument_is_refused_in_a_sentence(
    asked: Callable[[], object], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ps.PrivsweepError, match=told) as caught:
        asked()
    assert "--" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


SCORES = {"score": [0.1, 0.9, 0.2, 0.8, 0.7], "included": [0, 1, 0, 1, 1]}
SAME: list[tuple[Callable[[], object], Callable[[], object]]] = [
    (
        lambda: ps.epsilon(sampling="none", sigma=np.array(2.0), delta=np.array(1e-5)).upper,
        lambda: ps.epsilon(sampling="none", sigma=2.0, delta=1e-5).upper,
    ),
    *(
        (
            partial(lambda sigma: repr(ps.epsilon(sampling="none", sigma=sigma, delta=1e-5)), each),
            lambda: repr(ps.epsilon(sampling="none", sigma=[1.0, 2.0], delta=1e-5)),
        )
        for each in (polars.Series([1.0, 2.0]), np.array([1, 2], dtype=object))
    ),
    (
        lambda: (
            cast(Any, ps.plan("unamplified-epsilon", sigma=np.array([0.5, 4]), delta=np.float64(1e-5))).new
        ),
        lambda: 2,
    ),
    (
        lambda: ps.Run(delta=1e-6, **NONE).noise(target_epsilon=1, target_delta=1e-5).sigma,
        lambda: ps.noise(sampling="none", epsilon=1, delta=1e-5).sigma,
    ),
    (
        lambda: cast(Any, ps.Run(**NONE)).delta(target_epsilon=1.0).upper,
        lambda: ps.Run(**NONE).delta(epsilon=1.0).upper,
    ),
    (
        lambda: repr(ps.Run(sampling="none", sigma=np.array([0.5, np.sqrt(2)]))),
        lambda: "Run(sampling=none, sigma=[0.5, 1.4142135623730951])",
    ),
    (
        lambda: "; design states another" in str(ps.audit(scores=SCORES, guesses=2, delta=1e-5)),
        lambda: True,
    ),
]


@pytest.mark.parametrize(("asked", "same"), SAME, ids=range(len(SAME)))
def test_numbers_and_words_of_other_libraries_mean_what_plain_ones_do(
    asked: Callable[[], object], same: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert asked() == same()


def test_arrays_broadcast_to_enclosures_with_a_frame_and_a_plot(tmp_path: Path) -> None:
    sigma = np.geomspace(0.5, 4.0, 5)
    found: Any = ps.epsilon(sampling="none", sigma=sigma, delta=1e-5)
    assert found.shape == (5,)
    assert (found.lower <= found.upper).all()
    assert found[2].upper == ps.epsilon(sampling="none", sigma=float(sigma[2]), delta=1e-5).upper
    assert found.frame("polars")["sigma"].to_list() == sigma.tolist()
    found.plot(tmp_path / "ends.svg")
    assert (tmp_path / "ends.svg").read_text().count("ε") > 0
    grid: Any = ps.epsilon(sampling="none", sigma=sigma[:, None], delta=[1e-5, 1e-6])
    assert grid.shape == (5, 2)
    assert (grid.lower[:, 0] == found.lower).all()
    assert len(repr(found).splitlines()) == 6
    with pytest.raises(ps.DomainError, match="shapes fit"):
        ps.epsilon(sampling="none", sigma=[1.0, 2.0], delta=[1e-5] * 3)


def test_a_run_answers_every_number_of_its_profile() -> None:
    run = ps.Run(sampling="poisson", sigma=1.0, examples=200, batch_size=10, delta=1e-5)
    lines = {line["quantity"]: line for line in run.profile(delta=1e-5, epsilon=1.0, fpr=0.01)["profile"]}
    asked = {
        "epsilon": run.epsilon(),
        "delta": run.delta(epsilon=1.0),
        "true_positive_rate": run.tpr(fpr=0.01),
        "advantage": run.advantage(),
    }
    for quantity, found in asked.items():
        line = lines[quantity]
        assert max(found.lower, line["lower"]) <= min(found.upper, line["upper"]), quantity
        assert found.upper - found.lower <= 0.02 * found.upper, quantity
    assert run.noise(epsilon=run.epsilon().upper, precision=0.01).sigma == pytest.approx(1.0, rel=0.03)
    assert "poisson" in run.compare()


def test_the_least_noise_for_an_advantage_or_a_rate_suffices_and_less_does_not() -> None:
    public: dict[str, Any] = {"sampling": "none", "steps": 1}
    found = ps.noise(advantage=0.1, **public)
    assert ps.Run(sigma=found.sigma, **public).advantage().upper <= 0.1
    assert ps.Run(sigma=found.short_sigma, **public).advantage().lower > 0.1
    found = ps.noise(tpr=0.02, fpr=0.01, **public)
    assert ps.Run(sigma=found.sigma, **public).tpr(fpr=0.01).upper <= 0.02
    with pytest.raises(ps.DomainError, match="Expected one target: epsilon, advantage, or tpr with fpr"):
        ps.noise(epsilon=1, advantage=0.1, delta=1e-5, **public)


@pytest.mark.parametrize(
    ("word", "words", "next_one"),
    [
        ("epochs", {"sampling": "none", "sigma": 10.0}, 1),
        ("steps", {"sampling": "poisson", "sigma": 1.0, "sample_rate": 0.01}, 1),
        ("steps", {"sampling": "allocation", "sigma": 1.0}, -1),
        ("batch-size", {"sampling": "poisson", "sigma": 1.0, "examples": 100}, 1),
    ],
)
def test_the_largest_value_suffices_and_the_next_one_does_not(
    word: str, words: dict[str, Any], next_one: int, privsweep: Command
) -> None:
    found = ps.solve(word, epsilon=1.0, delta=1e-5, **words)
    name, value = found["solved"], found["value"]
    assert found["value_short"] == value + next_one
    assert ps.epsilon(delta=1e-5, **words, **{name: value}).upper <= 1.0
    assert ps.epsilon(delta=1e-5, **words, **{name: value + next_one}).lower > 1.0
    options = [f"--{each.replace('_', '-')}={text}" for each, text in words.items()]
    assert privsweep("solve", word, "--target-epsilon=1", "--delta=1e-5", *options) == 0
    assert f"{name}={value} suffices" in privsweep.out


def test_what_cannot_be_solved_is_refused() -> None:
    with pytest.raises(ps.DomainError, match="Expected one of"):
        ps.solve("sigma", epsilon=1.0, sampling="none", delta=1e-5)
    with pytest.raises(ps.DomainError, match="Expected no epochs, which is solved for"):
        ps.solve("epochs", epsilon=1.0, sampling="none", sigma=1, epochs=2, delta=1e-5)
    with pytest.raises(ps.PrivsweepError, match="No value of epochs is proved"):
        ps.solve("epochs", epsilon=0.1, sampling="none", sigma=0.1, delta=1e-5)


def test_the_noise_of_a_run_of_phases_keeps_its_ratios() -> None:
    run = "none(sigma=1,steps=3); none(sigma=2,steps=3)"
    found = ps.noise(run=run, epsilon=1.0, delta=1e-5, adjacency="add-remove")
    text = str(found.enough.problem.as_fields()["phases"])
    assert [float(each) for each in re.findall(r"sigma=([0-9.]+)", text)] == [found.sigma, 2 * found.sigma]
    again = ps.epsilon(run=text, delta=1e-5, adjacency="add-remove")
    assert again.upper <= 1.0


def test_owners_of_several_examples_are_asked_as_a_group() -> None:
    alone = ps.epsilon(sampling="none", sigma=0.125, delta=1e-5)
    owner = ps.epsilon(sampling="none", sigma=1, delta=1e-5, group=8)
    assert max(alone.lower, owner.lower) <= min(alone.upper, owner.upper)


def test_a_dropped_batch_has_the_steps_and_the_rate_of_opacus() -> None:
    found = ps.epsilon(
        sampling="poisson", sigma=1, delta=1e-6, examples=1000, batch_size=300, drop_last=True
    ).fields
    assert found["steps"] == 3
    assert found["sampling_probability"] >= 1 / 3


def test_scores_in_memory_are_those_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = {"score": rng.normal(size=40), "included": np.arange(40) % 3 == 0}
    file = tmp_path / "scores.csv"
    rows = zip(table["score"].tolist(), table["included"].tolist(), strict=True)
    file.write_text("score,included\n" + "".join(f"{score!r},{int(bit)}\n" for score, bit in rows))
    options: dict[str, Any] = {"guesses": 10, "delta": 1e-5}
    assert dict(ps.audit(scores=table, **options)) == dict(ps.audit(scores=file, **options))
    inside, outside = (table["score"][table["included"] == bit] for bit in (True, False))
    parted = ps.audit(scores=inside, scores_out=outside, **options)
    assert parted["canaries"] == 40


@pytest.mark.parametrize("counts", ["2000,200,180", "2000 200 180", "2000/200/180", (2000, 200, 180)])
def test_counts_of_an_audit_are_read_in_any_usual_form(counts: Any, privsweep: Command) -> None:
    found = ps.audit(counts=counts, delta=1e-5, design="independent")
    assert (found["canaries"], found["guesses"], found["correct"]) == (2000, 200, 180)
    words = counts.split(" ") if isinstance(counts, str) else counts
    assert privsweep("audit", "--counts", *words, "--delta", 1e-5, "--design", "independent", "--json") == 0
    assert privsweep.json == dict(found)


def test_a_roc_curve_refutes_as_the_counts_at_its_thresholds(tmp_path: Path, privsweep: Command) -> None:
    file = tmp_path / "roc.csv"
    file.write_text("fpr,tpr\n0.01,0.3\n0.1,0.6\n")
    found = ps.audit(roc=file, runs=(1000, 1000), delta=1e-5)
    same = ps.audit(roc={"fpr": [0.01, 0.1], "tpr": [0.3, 0.6]}, runs=[1000, 1000], delta=1e-5)
    assert dict(found) == dict(same)
    fields: dict[str, Any] = {
        "runs_with": 1000,
        "true_positives": 300,
        "runs_without": 1000,
        "false_positives": 10,
    }
    alone = ps.ask("audit-runs-epsilon", **fields, delta=1e-5, audit_confidence=0.975)
    assert found["refuted_epsilon"] == alone.lower > 2.0
    assert privsweep("audit", "--roc", file, "--runs", 1000, 1000, "--delta", 1e-5) == 0
    assert "all 2 thresholds were fixed beforehand" in privsweep.out
    assert privsweep("audit", "--roc", file, "--delta", 1e-5) == 2


def test_files_of_one_or_two_columns_need_no_header(tmp_path: Path) -> None:
    named, bare = tmp_path / "named.csv", tmp_path / "bare.csv"
    rows = "0.1,0\n0.9,1\n0.2,0\n0.8,1\n0.7,1\n"
    named.write_text("score,included\n" + rows)
    bare.write_text(rows)
    options: dict[str, Any] = {"guesses": 2, "delta": 1e-5}
    assert dict(ps.audit(scores=bare, **options)) == dict(ps.audit(scores=named, **options))


def test_losses_that_count_as_scores_get_a_hint() -> None:
    table = {"loss": [0.1, 0.9, 0.2, 0.8, 0.7], "included": [1, 0, 1, 0, 0]}
    options: dict[str, Any] = {"score_column": "loss", "guesses": 2, "delta": 1e-5, "scores": table}
    assert "state lower_is_member" in ps.audit(**options)["hints"][0].replace(
        "--lower-is-member", "lower_is_member"
    )
    assert ps.audit(lower_is_member=True, **options)["hints"] == []


@pytest.mark.parametrize("query", ["file", "path", "-"])
def test_a_query_comes_from_a_file_or_from_standard_input(
    query: str, tmp_path: Path, privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "query.sql"
    file.write_text("select 42 as answer")
    monkeypatch.setattr("sys.stdin", io.StringIO("select 42 as answer"))
    put(Path("store"), row(epsilon(), Answer.enclosure(4.37717, 4.37718)))
    asked: Any = {"file": "query.sql", "path": file, "-": "-"}[query]
    assert privsweep("sql", asked, "--csv") == 0
    assert privsweep.out.split() == ["answer", "42"]
    if query != "-":
        assert ps.sql(asked).arrow.to_pylist() == [{"answer": 42}]


@pytest.mark.parametrize(("query", "seconds"), [("select 1", 0), ("select * from range(10000000000)", 0.2)])
def test_a_query_that_takes_too_long_is_told_in_a_sentence(
    query: str, seconds: float, privsweep: Command
) -> None:
    put(Path("store"), row(epsilon(), Answer.enclosure(4.37717, 4.37718)))
    with pytest.raises(LimitError, match=f"The query took longer than {seconds} s"):
        ps.sql(query, limit_seconds=seconds)
    for options in ([], ["--csv"]):
        assert privsweep("sql", query, "--limit-seconds", seconds, *options) == ExitCode.LIMIT
        assert f"The query took longer than {seconds} s." in privsweep.err


def test_several_runs_on_the_command_line_are_a_table(privsweep: Command) -> None:
    assert (
        privsweep("epsilon", "--sampling", "none", "--sigma", "0.8,1", "--delta", "1/100000", "--json") == 0
    )
    first, second = (json.loads(line) for line in privsweep.out.splitlines())
    assert (first["fields"]["sigma"], second["fields"]["sigma"]) == (0.8, 1.0)
    assert second["upper"] == ps.epsilon(sampling="none", sigma=1, delta=1e-5).upper


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--noise-multiplier", "1", "--sigma", "2"], "Expected --sigma once, got it 2 times."),
        (["--sigma", "1", "--delta", "1e-6"], "Expected --delta once, got it 2 times."),
    ],
)
def test_an_option_with_one_value_is_refused_twice(
    words: list[str], sentence: str, privsweep: Command
) -> None:
    assert privsweep("epsilon", "--sampling", "none", "--delta", 1e-5, *words) == 2
    assert sentence in privsweep.err


def test_steps_without_sampling_are_explained_and_not_solved_for(privsweep: Command) -> None:
    words = ("--sampling", "none", "--sigma", 10, "--delta", 1e-5)
    assert privsweep("epsilon", *words, "--steps", 10) == 0
    assert "full batches use it in each step, which is participations=10" in privsweep.err
    assert privsweep("solve", "steps", *words, "--epsilon", 2) == 2
    assert "Expected to solve for epochs with sampling none" in privsweep.err


def test_a_comparison_of_a_run_does_not_forget_a_word() -> None:
    with pytest.raises(ps.DomainError, match="without sampling_probability, group to compare"):
        ps.Run(sampling="poisson", sigma=1, steps=9, sampling_probability=0.05, group=8).compare(1e-5)


def test_a_truth_value_of_numpy_is_one() -> None:
    words: dict[str, Any] = {"sampling": "poisson", "sigma": 1, "delta": 1e-6, "examples": 9, "batch_size": 4}
    assert ps.epsilon(**{**words, "drop_last": np.True_}).fields["steps"] == 2
    assert ps.epsilon(**{**words, "drop_last": np.False_, "keep_last": np.True_}).fields["steps"] == 3


def test_a_word_is_no_truth_value() -> None:
    with pytest.raises(TypeError, match="expected True or False for drop_last, got 'no'"):
        ps.epsilon(sampling="none", sigma=1, delta=1e-5, drop_last="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("header", ["0,1", "score,included"])
def test_numbers_of_columns_are_no_rows(header: str, privsweep: Command, tmp_path: Path) -> None:
    file = tmp_path / "roc.csv"
    file.write_text(f"{header}\n0,0.1\n0.1,0.5\n")
    assert privsweep("audit", "--roc", file, "--runs", 100, 100, "--delta", 1e-5) == 2
    file.write_text("0,0.1\n0.1,0.5\n")
    assert privsweep("audit", "--roc", file, "--runs", 100, 100, "--delta", 1e-5) == 0
    assert "(add-remove)" in privsweep.out
    refused = ("--claimed-epsilon", 0.1)
    assert privsweep("audit", "--roc", file, "--runs", 100, 100, "--delta", 1e-5, *refused) == 2
    assert "Expected --roc without --claimed-epsilon" in privsweep.err


def test_a_column_that_is_named_needs_a_header(privsweep: Command, tmp_path: Path) -> None:
    file = tmp_path / "etas.csv"
    file.write_text("0.5\n0.5\n0.3\n")
    assert (
        privsweep("ask", "label-advantage", "mechanism=llp", f"prior=column({file},foo)", "bag_size=2") == 2
    )
    assert "Expected a column named foo" in privsweep.err
