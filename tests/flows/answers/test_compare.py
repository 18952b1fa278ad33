"""The command compare: the meaning, source and claim of each row."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from flows.answers.ask import Asked, ask
from flows.answers.sourced import Sourced
from flows.answers.training.compare import problems
from flows.answers.training.compare import rows as rows_of
from privcore import Answer, Problem, find, find_problem
from privsweep import compare
from storage import Row, open_store
from storage.sql.macros import literal
from tests.flows.small_store import Command, point, store_of
from tests.storage import made_up

pytestmark = pytest.mark.sampled(12)

RUN = ("--sigma", "1.1", "--steps", "100", "--delta", "1e-5")
SIZES = ("--sigma", "1.1", "--delta", "1e-5", "--examples", "1000", "--batch-size")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with allocation and no amplification at sigma 1 and 1.2."""
    return store_of(
        tmp_path_factory.mktemp("compared") / "store",
        [
            point(problem, method, sigma=sigma, steps=100, delta=1e-5)
            for problem, method in (
                ("allocation-epsilon", "allocation.certified"),
                ("unamplified-epsilon", "unamplified.exact"),
            )
            for sigma in (1.0, 1.2)
        ],
    )


def by_sampling(privsweep: Command, *words: object) -> dict[str, Any]:
    assert privsweep("compare", *words, "--json") == 0, privsweep.err
    return {row["sampling"]: row for row in privsweep.json["rows"]}


def test_every_row_is_the_answer_to_its_own_question(privsweep: Command) -> None:
    rows = by_sampling(privsweep, *RUN)
    assert list(rows) == ["allocation", "poisson", "fixed-size", "shuffling", "none"]
    assert rows["poisson"]["fields"]["sampling_probability"] == 0.01
    for name in ("allocation", "poisson", "none"):
        row = rows[name]
        asked = ask(find_problem(row["problem"]).from_fields(row["fields"]))
        assert row["lower"] <= asked.upper
        assert asked.lower <= row["upper"]
        assert (row["kind"], row["adjacency"], row["source"]) == (
            "enclosure, proved",
            "add-remove",
            "computed",
        )
    assert rows["allocation"]["upper"] < rows["poisson"]["upper"] < rows["none"]["upper"]


def test_replaced_examples_are_compared_for_every_sampling(privsweep: Command) -> None:
    """A replaced example may be followed by one without a gradient, as if it were removed."""
    replaced = by_sampling(privsweep, *RUN, "--epochs", 2, "--adjacency", "replace-one")
    zeroed = by_sampling(privsweep, *RUN, "--epochs", 2, "--adjacency", "zero-out")
    assert list(replaced) == [
        "allocation",
        "poisson",
        "fixed-size",
        "balls-in-bins",
        "shuffling",
        "none",
    ]
    for name, row in replaced.items():
        assert row["adjacency"] == "replace-one"
        assert row["upper"] >= zeroed[name]["lower"]
        assert not any("neighbouring relation of this row" in note for note in row["notes"])
    assert replaced["allocation"]["fields"]["redraw"] == "each-epoch"
    one = ("epsilon", *RUN, "--epochs", 2, "--adjacency", "replace-one", "--sampling", "allocation", "--json")
    assert privsweep(*one) == 0
    assert privsweep.json["upper"] == replaced["allocation"]["upper"]
    assert privsweep(*one, "--redraw", "once") == 2
    assert "Expected no redraw with sampling allocation" in privsweep.err


def test_the_printed_table_encloses_the_exact_numbers(privsweep: Command) -> None:
    rows = by_sampling(privsweep, *RUN)
    assert privsweep("compare", *RUN) == 0
    title, names, *lines = privsweep.out.splitlines()
    assert title == "epsilon at sigma=1.1 delta=1e-5 adjacency=add-remove"
    assert names.split() == ["sampling", "epsilon", "lower", "epsilon", "upper", "kind", "method"]
    for line, row in zip(lines, rows.values(), strict=False):
        name, low, high, *_ = line.split()
        assert name == row["sampling"]
        assert float(low) <= row["lower"] <= row["upper"] <= float(high)


def test_poisson_sampling_has_the_same_expected_batch_and_its_own_safe_rounding(privsweep: Command) -> None:
    rows = by_sampling(privsweep, *SIZES, "300")
    assert rows["allocation"]["fields"]["steps"] == rows["shuffling"]["fields"]["steps"] == 3
    assert rows["poisson"]["fields"]["steps"] == 4
    assert 0.3 <= rows["poisson"]["fields"]["sampling_probability"] <= 0.3 + 1e-15
    assert privsweep("compare", *SIZES, "300") == 0
    assert "steps=4 sampling_probability=0.3" in privsweep.out


def test_draws_with_replacement_are_compared_if_their_number_is_known(privsweep: Command) -> None:
    row = by_sampling(privsweep, *SIZES, "300", "--participations", 2)["with-replacement"]
    fields = {"steps": 4, "examples": 1000, "batch_size": 600, "adjacency": "zero-out"}
    assert fields.items() <= row["fields"].items()
    assert row["notes"][0].startswith("The neighbouring relation of this row is zero-out")
    assert row["lower"] <= ask(find_problem(row["problem"]).from_fields(row["fields"])).upper
    assert "with-replacement" not in by_sampling(privsweep, *RUN)


@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one", "remove", "add"])
def test_shuffling_that_drops_the_last_batch_has_a_row_in_every_relation(
    relation: str, privsweep: Command
) -> None:
    run = (*SIZES, "300", "--epochs", 2, "--adjacency", relation)
    rows = by_sampling(privsweep, *run)
    found = rows["shuffling-drop-last"]
    alone = ("--sampling", "shuffling", "--drop-last", "--redraw", "each-epoch")
    answer = privsweep.told("epsilon", *run, *alone)
    assert (found["lower"], found["upper"]) == (answer["lower"], answer["upper"])
    assert found["notes"][0].endswith("the share 0.1 of all.")
    assert found["adjacency"] == relation
    assert len(found["notes"]) == (1 if relation in ("zero-out", "replace-one") else 2)
    assert privsweep("compare", *run) == 0
    assert "phases=shuffling(sigma=1.1,steps=3,epochs=2,redraw=each-epoch,dropped=0.1)" in privsweep.out


@pytest.mark.parametrize("words", [("500",), ("300", "--participations", 2)])
def test_shuffling_has_one_row_if_nothing_is_left_out(words: tuple[object, ...], privsweep: Command) -> None:
    assert "shuffling-drop-last" not in by_sampling(privsweep, *SIZES, *words)


def test_more_examples_than_a_problem_has_leave_its_row_out(privsweep: Command) -> None:
    sizes = ("--sigma", "1", "--delta", "1e-15", "--examples", "1e12", "--batch-size", "1e11")
    assert "with-replacement" not in by_sampling(privsweep, *sizes)


def test_a_direction_keeps_the_note_about_the_relation(privsweep: Command) -> None:
    rows = by_sampling(privsweep, *RUN, "--adjacency", "remove")
    for name in ("fixed-size", "shuffling"):
        assert rows[name]["notes"][0].startswith("The neighbouring relation of this row is zero-out-remove")


def test_clones_bound_shuffling_for_batches_of_any_size(privsweep: Command) -> None:
    rows = by_sampling(privsweep, "--sigma", "3", "--delta", "1e-3", "--steps", "100000")
    assert rows["shuffling"]["upper_method"] == "shuffling.clones"
    assert rows["shuffling"]["upper"] < 0.9 * rows["none"]["upper"]


def test_a_batch_size_gives_shuffling_a_smaller_upper_end(privsweep: Command) -> None:
    run, sizes = (*SIZES[:4], "--epochs", 10), ("--examples", 10000, "--batch-size", 2000)
    some, sized = (by_sampling(privsweep, *run, *words)["shuffling"] for words in (("--steps", 5), sizes))
    assert some["notes"][-1].endswith("compare with --examples and --batch-size has a smaller one.")
    assert sized["upper"] < 0.95 * some["upper"]
    alone = ("--sampling", "shuffling", "--redraw", "each-epoch", "--adjacency", "zero-out", "--keep-last")
    assert privsweep("epsilon", *run, *sizes, *alone, "--json") == 0
    assert (sized["lower"], sized["upper"]) == (privsweep.json["lower"], privsweep.json["upper"])


@pytest.mark.sampled(1)
def test_both_ends_of_shuffling_are_those_of_all_epochs(privsweep: Command) -> None:
    once, often = by_sampling(privsweep, *RUN), by_sampling(privsweep, *RUN, "--epochs", "5")
    assert often["shuffling"]["lower"] > once["shuffling"]["lower"] > often["poisson"]["upper"]
    assert often["shuffling"]["upper"] > once["shuffling"]["upper"]
    fields = often["shuffling"]["fields"]
    assert (fields["epochs"], fields["redraw"], fields["adjacency"]) == (5, "each-epoch", "zero-out")
    assert once["shuffling"]["fields"]["redraw"] == "one-epoch"
    assert often["shuffling"]["notes"][0].startswith("The neighbouring relation of this row is zero-out")


def test_shuffling_says_whether_it_has_a_better_upper_end_than_no_amplification(privsweep: Command) -> None:
    for sigma, better in (("1.1", False), ("10", True)):
        row = by_sampling(privsweep, "--sigma", sigma, *RUN[2:], "--epochs", "5")["shuffling"]
        sentences = [
            note for note in row["notes"] if note.startswith("The upper end is that of no amplification")
        ]
        assert len(sentences) == (0 if better else 1)


def test_shuffling_has_the_direction_that_was_asked_for(privsweep: Command) -> None:
    rows = by_sampling(privsweep, *RUN, "--adjacency", "add")
    assert rows["shuffling"]["adjacency"] == rows["allocation"]["adjacency"] == "add"


def test_shuffling_does_not_apply_to_more_participations_and_says_why(privsweep: Command) -> None:
    words = ("--participations", "2", "--adjacency", "add")
    rows = by_sampling(privsweep, *RUN, *words)
    assert rows["shuffling"]["status"] == "not_applicable"
    assert rows["shuffling"]["upper"] is None
    assert rows["poisson"]["fields"]["sampling_probability"] == 0.02
    assert privsweep("compare", *RUN, *words) == 0
    assert "does not apply" in privsweep.out
    assert "Shuffling uses every example in one step of an epoch, not in participations=2." in privsweep.out


def test_stored_rows_are_not_computed_and_say_so(privsweep: Command, store: Path) -> None:
    rows = by_sampling(privsweep, "--sigma", "1", *RUN[2:], "--store", store)
    assert [rows[name]["source"] for name in ("allocation", "poisson", "none")] == [
        "store",
        "computed",
        "store",
    ]
    assert (rows["shuffling"]["lower_source"], rows["shuffling"]["upper_source"]) == ("computed", "computed")
    between = by_sampling(privsweep, *RUN, "--store", store, "--stored-only")
    assert between["allocation"]["source"] == "store-monotone"
    assert between["poisson"]["status"] == between["shuffling"]["status"] == "missing"
    computed = by_sampling(privsweep, *RUN)
    assert between["allocation"]["lower"] <= computed["allocation"]["lower"]
    assert computed["allocation"]["upper"] <= between["allocation"]["upper"]
    assert privsweep("compare", *RUN, "--store", store, "--stored-only") == 0
    assert "not stored" in privsweep.out


def test_ends_that_exclude_one_another_are_a_conflict_and_no_answer() -> None:
    asked, _ = problems({"sigma": 1, "steps": 10, "delta": 1e-5})

    def answering(problem: Problem) -> Sourced:
        lower, upper = (5.0, 4.0) if problem.name == "shuffling-epsilon" else (1.0, 4.0)
        asked = Asked(problem=problem, replies=(), lower=lower, upper=upper, lower_by="one", upper_by="other")
        return Sourced(problem=problem, bracket=asked, answer=asked, source="computed", told="now")

    found = {row.sampling: row for row in rows_of(asked, answering)}
    assert (found["shuffling"].status, found["shuffling"].bracket) == ("conflict", None)
    assert found["shuffling"].notes[-1] == (
        "Methods contradict one another: one gives at least 5.0, other at most 4.0."
    )
    assert found["none"].status == "ok"


def made_up_bracket(problem: Problem, draw: random.Random) -> Answer:
    """A bracket around a function with the proved trends of all four schemes; some have one end."""
    fields: dict[str, Any] = problem.as_fields()
    chosen = fields.get("participations", 1) * fields["epochs"]
    match problem.name:
        case "allocation-epsilon":
            chosen /= fields["steps"]
        case "poisson-epsilon":
            chosen *= fields["steps"] * fields["sampling_probability"]
    truth = float(-math.log(fields["delta"]) * chosen / fields["sigma"])
    ends = [Answer.enclosure(0.9 * truth, 1.1 * truth), Answer.at_least(truth), Answer.at_most(truth)]
    return draw.choice(ends)


@pytest.fixture(scope="module")
def drawn_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 60 drawn rows of each scheme."""
    draw, root = random.Random(8), tmp_path_factory.mktemp("drawn") / "store"
    methods = {
        "allocation-epsilon": "allocation.certified",
        "poisson-epsilon": "poisson.certified",
        "shuffling-epsilon": "shuffling.clones",
        "unamplified-epsilon": "unamplified.exact",
    }
    for name, method in methods.items():
        kind, found = find_problem(name), dict[Problem, Row]()
        both = "zero-out" if name == "shuffling-epsilon" else "add-remove"
        while len(found) < 60:
            steps, epochs = draw.choice([3, 6, 7, 12]), draw.choice([1, 2, 4])
            fields = {
                "sigma": draw.choice([1.0, 1.5, 2.0]),
                "steps": steps,
                "delta": draw.choice([1e-6, 1e-5]),
                "participations": draw.choice([1, 2]),
                "epochs": epochs,
                "sampling_probability": draw.choice([1, 2]) / steps,
                "redraw": "one-epoch" if epochs == 1 else "each-epoch",
                "adjacency": draw.choice([both, "add"]),
            }
            problem = kind.from_fields({key: fields[key] for key in fields.keys() & kind.parameters.keys()})
            found[problem] = made_up.row(problem, made_up_bracket(problem, draw), method=find(method)())
        made_up.put(root, found.values())
    return root


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_stored_only_finds_what_the_macro_of_sql_finds(
    privsweep: Command, drawn_store: Path, seed: int
) -> None:
    draw = random.Random(seed)
    steps, batch = draw.choice([3, 6, 7, 12]), draw.randint(1, 300)
    given: dict[str, Any] = {
        "sigma": draw.choice([1.0, 1.2, 1.5, 1.7, 2.0]),
        "delta": draw.choice([1e-6, 3e-6, 1e-5]),
        "epochs": draw.choice([1, 2, 3, 4]),
        "participations": draw.choice([1, 1, 2]),
        "adjacency": draw.choice(["add-remove", "add"]),
    }
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    sizes = ("--steps", steps) if seed % 2 else ("--examples", steps * batch, "--batch-size", batch)
    arguments = ", ".join(f"{name} := {literal(value)}" for name, value in (given | {"steps": steps}).items())
    with open_store(drawn_store) as opened:
        wanted = opened.sql(f"from compare({arguments})").to_pylist()
    proved = {each["problem"]: each for each in wanted if each["lower_method"] or each["upper_method"]}
    code = privsweep("compare", *words, *sizes, "--store", drawn_store, "--stored-only", "--json")
    assert code == (0 if proved else 3), privsweep.err
    rows = (
        {each["problem"]: each for each in privsweep.json["rows"] if each["status"] == "ok"} if proved else {}
    )
    assert rows.keys() == proved.keys()
    size: dict[str, Any] = {
        name.lstrip("-").replace("-", "_"): n for name, n in zip(sizes[::2], sizes[1::2], strict=True)
    }
    python = compare(**given, **size, store=drawn_store, stored_only=True).values()
    ends = {name: (float(row["lower"]), float(row["upper"])) for name, row in rows.items()}
    assert {one.problem.name: (one.lower, one.upper) for one in python} == ends
    for name, each in proved.items():
        found = {key: float(rows[name][key]) for key in ("lower", "upper")}
        if given["delta"] == 3e-6:  # between two stored deltas, a lookup may be better than a macro
            assert each["lower"] <= found["lower"] <= found["upper"] <= each["upper"]
            continue
        assert found == {key: each[key] for key in ("lower", "upper")}
        assert rows[name]["upper_method"] == each["upper_method"]


def test_where_nothing_is_stored_stored_only_is_exit_code_3(privsweep: Command, store: Path) -> None:
    assert privsweep("compare", *RUN, "--adjacency", "add", "--store", store, "--stored-only") == 3
    assert privsweep.err.count("\n") == 1
    assert privsweep.out == ""


def test_a_limit_shows_in_its_row_and_in_the_exit_code(privsweep: Command) -> None:
    assert privsweep("compare", *RUN, "--limit-seconds", "0.01") == 4
    assert "Not started: poisson.certified may need" in privsweep.out
    assert privsweep("compare", *RUN, "--limit-seconds", "0.01", "--json") == 4
    rows = {row["sampling"]: row for row in privsweep.json["rows"]}
    assert (rows["poisson"]["status"], rows["poisson"]["lower"]) == ("timeout", None)
    assert rows["none"]["status"] == "ok"


def test_a_large_delta_is_told(privsweep: Command) -> None:
    assert privsweep("compare", *SIZES[:2], "--delta", "1e-3", *SIZES[4:], "500", "--json") == 0
    assert "delta=0.001 is not below 1/examples=0.001" in privsweep.err
    json.loads(privsweep.out)
