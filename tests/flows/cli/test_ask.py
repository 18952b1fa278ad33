"""The commands that answer questions, as people and scripts call them."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app as cli
from flows.cli.options import exit_code
from flows.spec.grid import expand
from flows.spec.sweep import load
from privcore import METHODS, PROBLEMS, Answer, Point, evaluate, find, find_problem
from storage import Manifest, Row, open_store, publish, to_table, write_manifest
from storage.place.located import located
from tests.flows.small_store import Command
from tests.storage.made_up import put
from tests.storage.made_up import row as made_up

pytestmark = pytest.mark.sampled(36)

SWEEP = """
name = "small"
title = "Gaussian noise"

[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product.sigma = [0.5, 1.0, 2.0]
product.delta = [1e-8, 1e-5]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "small.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture(scope="module")
def store(spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every point of the sweep, computed here, and the sweep's manifest."""
    root = tmp_path_factory.mktemp("results") / "store"
    now = datetime.now(UTC)
    sweep = load(spec)
    rows = [row_of(point, now) for point in expand(sweep.grids)]
    with open_store(root, create=True):
        part = publish(located(root), to_table(rows))
    write_manifest(
        located(root),
        Manifest(
            digest=sweep.digest,
            name=sweep.name,
            spec=sweep.spec,
            counts={"ok": len(rows)},
            parts=(str(part.relative_to(root / "data")),),
            git_commit="unknown",
            started_at=now,
            finished_at=now,
            status="complete",
        ),
    )
    return root


def row_of(point: Point, now: datetime) -> Row:
    return Row(
        point=point,
        answer=evaluate(point),
        seconds=0.001,
        cpu_seconds=0.001,
        attempt=1,
        finished_at=now,
        sweep="small",
    )


ONE = ("unamplified-epsilon", "sigma=1", "delta=1e-5")
RUN = ("--sampling", "none", "--delta", "1e-5")


# ------------------------------------------------------------------------------------ ask


def test_ask_prints_the_bracket_and_what_each_method_said(privsweep: Command) -> None:
    assert privsweep("ask", *ONE) == 0
    assert "epsilon in [4.37717, 4.37718]" in privsweep.out
    assert "unamplified.exact" in privsweep.out
    assert privsweep.err == ""


def test_ask_json_is_the_documented_line(privsweep: Command) -> None:
    content = privsweep.told("ask", *ONE)
    assert list(content) == ["problem", "fields", "lower", "upper", "confidence", "status", "methods"]
    assert content["lower"] <= 4.3771780957 <= content["upper"] + 1e-9
    assert content["methods"][0]["name"] == "unamplified.exact"


def test_ask_takes_the_named_method_only(privsweep: Command) -> None:
    assert privsweep("ask", *ONE, "--method", "unamplified.exact", "--json") == 0
    assert [method["name"] for method in privsweep.json["methods"]] == ["unamplified.exact"]


def test_whole_numbers_may_be_written_with_an_exponent(privsweep: Command) -> None:
    assert privsweep.told("ask", *ONE, "steps=1e4")["fields"]["steps"] == 10_000


def test_a_cost_above_the_limit_is_exit_code_4(privsweep: Command) -> None:
    assert privsweep.told("ask", *ONE, "--limit-seconds", "1e-9", code=4)["status"] == "timeout"
    assert "Not started" in privsweep.err


def test_a_batch_answers_each_line_in_order_and_goes_on_after_a_bad_one(
    privsweep: Command, tmp_path: Path
) -> None:
    lines = [
        {"problem": "unamplified-epsilon", "sigma": 1, "delta": 1e-5},
        {"problem": "unamplified-epsilon", "sigma": "1", "delta": 1e-5},
        {"problem": "unamplified-delta", "sigma": 2, "epsilon": 1.0},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert privsweep("ask", "--batch", path) == 2
    contents = [json.loads(line) for line in privsweep.out.splitlines()]
    assert [content["status"] for content in contents] == ["ok", "misuse", "ok"]
    assert [content["problem"] for content in contents] == [line["problem"] for line in lines]
    assert contents[1]["upper"] == "inf"
    path.write_text(json.dumps(lines[0]))
    assert privsweep("ask", "--batch", path) == 0
    assert privsweep("ask", "--batch", path, "--limit-seconds", "1e-9") == 4


def test_a_batch_survives_text_that_no_encoding_can_print(privsweep: Command, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(r'{"problem": "\ud800", "sigma": 1}')
    assert privsweep("ask", "--batch", path) == 2
    assert privsweep.json["status"] == "misuse"


def test_a_batch_from_standard_input_is_flushed_line_by_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flows.cli", "ask", "--batch", "-"]
    question = b'{"problem": "unamplified-epsilon", "sigma": 1, "delta": 1e-5}\n'
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(question)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["status"] == "ok", "before the next line is sent"
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_the_commands_are_what_the_app_registers() -> None:
    result = CliRunner().invoke(cli.app, ["ask", *ONE, "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "ok"


# -------------------------------------------------------------------------------- epsilon


def test_epsilon_is_computed_where_there_is_no_store_and_says_so(privsweep: Command) -> None:
    assert privsweep("epsilon", *RUN, "--sigma", "1") == 0
    assert "epsilon in [4.37717, 4.37718]" in privsweep.out
    assert "adjacency  add-remove" in privsweep.out
    assert "method     unamplified.exact" in privsweep.out
    assert "source     computed now" in privsweep.out


def test_epsilon_comes_from_the_store_where_the_question_is_stored(privsweep: Command, store: Path) -> None:
    words = ("epsilon", *RUN, "--sigma", "1", "--store", store)
    assert privsweep(*words) == 0
    assert "source     store, exactly this problem" in privsweep.out
    content = privsweep.told(*words)
    assert (content["source"], content["method"]) == ("store", "unamplified.exact")
    assert content["adjacency"] == "add-remove"
    assert content["lower"] <= 4.37717809568 <= content["upper"]
    assert privsweep("epsilon", *RUN, "--noise-multiplier", "1", "--store", store) == 0
    assert "source     store" in privsweep.out


def test_epsilon_between_grid_points_is_computed_unless_only_stored_is_asked(
    privsweep: Command, store: Path
) -> None:
    words = ("epsilon", *RUN, "--sigma", "1.5", "--store", store)
    computed = privsweep.told(*words)
    assert computed["source"] == "computed"
    stored = privsweep.told(*words, "--stored-only")
    assert stored["source"] == "store-monotone"
    assert stored["upper_from"]["sigma"] == 1.0
    assert stored["lower_from"]["sigma"] == 2.0
    assert stored["lower"] <= computed["lower"] <= computed["upper"] <= stored["upper"]
    assert privsweep(*words, "--stored-only") == 0
    assert "store, by monotonicity: lower end from sigma=2, upper end from sigma=1" in privsweep.out


def test_only_what_would_be_computed_is_answered_from_a_store(privsweep: Command, store: Path) -> None:
    words = ("--sampling", "none", "--sigma", "1", "--store", store, "--json", "--delta")
    for delta, source in (("1e-5", "store"), ("1.001e-5", "computed")):
        assert privsweep("epsilon", *words, delta) == 0
        assert privsweep.json["source"] == source


def test_stored_only_without_an_answer_is_exit_code_3_and_says_what_is_stored(
    privsweep: Command, store: Path
) -> None:
    words = ("epsilon", "--sampling", "none", "--sigma", "1", "--stored-only", "--adjacency", "add")
    assert privsweep(*words, "--delta", "1e-5", "--store", store) == 3
    assert "It has: sigma 0.5 to 2, delta 1e-8 to 1e-5" in privsweep.err
    assert privsweep(*words, "--delta", "1e-5", "--store", "nowhere") == 2
    assert "No store found at nowhere" in privsweep.err


def test_random_allocation_is_answered_in_one_command(privsweep: Command) -> None:
    words = ("--sampling", "allocation", "--sigma", "1", "--steps", "10000", "--delta", "1e-8")
    content = privsweep.told("epsilon", *words)
    assert content["upper"] / content["lower"] <= 1.001
    assert content["lower"] <= 0.060402 <= content["upper"], "between the bounds of a finer grid"
    assert content["problem"] == "allocation-epsilon"


def test_examples_and_batch_size_give_the_steps_and_a_large_delta_is_told(privsweep: Command) -> None:
    sizes = ("--sampling", "allocation", "--examples", "60000", "--batch-size", "256")
    assert privsweep.told("epsilon", "--sigma", "1", "--delta", "1e-3", *sizes)["fields"]["steps"] == 234
    assert "rounded down" in privsweep.err
    assert "not below 1/examples" in privsweep.err


# ---------------------------------------------------------------------------------- noise


def test_noise_is_proved_by_the_epsilon_command_with_the_printed_number(privsweep: Command) -> None:
    assert privsweep("noise", "--epsilon", "1", *RUN) == 0
    words = privsweep.out.split()
    assert words[0] == "sigma"
    assert privsweep.told("epsilon", *RUN, "--sigma", words[1])["upper"] <= 1.0


def test_noise_json_has_both_sides(privsweep: Command) -> None:
    content = privsweep.told("noise", "--epsilon", "2", *RUN, "--precision", "1e-4")
    assert content["upper"] <= 2.0 < content["lower_short"]
    assert content["sigma_short"] < content["sigma"] <= content["sigma_short"] * 1.0001
    assert content["method"] == "unamplified.exact"


def test_noise_for_random_allocation(privsweep: Command) -> None:
    words = ("--sampling", "allocation", "--steps", "1000", "--delta", "1e-6")
    assert 0.68 < privsweep.told("noise", "--epsilon", "1", *words)["sigma"] < 0.71


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--epsilon", "1e-9", "--sampling", "none", "--delta", "1e-300"], 3, "No sigma in [0.001, 1e+06]"),
        (["--epsilon", "1", *RUN, "--limit-seconds", "1e-9"], 4, "Not started"),
    ],
)
def test_noise_that_is_not_found_is_one_sentence_and_its_exit_code(
    privsweep: Command, words: Sequence[str], code: int, sentence: str
) -> None:
    assert privsweep("noise", *words) == code
    assert sentence in privsweep.err
    assert privsweep.err.count("\n") == 1
    assert privsweep.out == ""


# ---------------------------------------------------------------------------------- steps


def test_steps_prints_both_roundings_of_both_schemes_and_which_is_safe(privsweep: Command) -> None:
    assert privsweep("steps", "--examples", "60000", "--batch-size", "256", "--epochs", "10") == 0
    title, names, *rows = privsweep.out.splitlines()
    rows, (down, up) = rows[:4], rows[4:6]
    assert title.startswith("examples / batch_size = 60000 / 256 = 234.375 steps per epoch, epochs=10")
    assert names.split()[-1] == "safe"
    assert [row.split() for row in rows] == [
        ["allocation", "down", "234", "2340", "256.41", "yes"],
        ["allocation", "up", "235", "2350", "255.319", "no"],
        ["poisson", "down", "234", "2340", "0.004266666666666667", "256", "no"],
        ["poisson", "up", "235", "2350", "0.004266666666666667", "256", "yes"],
    ]
    assert down.startswith("allocation: rounding down is safe: with fewer steps, ")
    assert up.startswith("poisson: rounding up is safe: every further step ")


def test_steps_with_noise_brackets_epsilon_for_every_rounding(privsweep: Command) -> None:
    words = ("--examples", "1000", "--batch-size", "300", "--sigma", "1", "--delta", "1e-5")
    assert privsweep("steps", *words) == 0
    rows = [row.split() for row in privsweep.out.splitlines()[3:7]]
    content = privsweep.told("steps", *words)
    assert (content["quotient"], content["safe"]) == (1000 / 300, {"allocation": "down", "poisson": "up"})
    assert set(content["why"]) == {"allocation", "poisson"}
    for row, rounding in zip(rows, content["roundings"], strict=True):
        assert row[:3] == [rounding["sampling"], rounding["way"], str(rounding["steps"])]
        assert rounding["epsilon"]["fields"]["steps"] == rounding["steps"]
        assert (
            float(row[-2]) <= rounding["epsilon"]["lower"] <= rounding["epsilon"]["upper"] <= float(row[-1])
        )
        command = ["epsilon", "--sigma", "1", "--delta", "1e-5", "--sampling", rounding["sampling"], "--json"]
        if rounding["safe"]:
            assert privsweep(*command, "--examples", "1000", "--batch-size", "300") == 0
            assert privsweep.json["fields"] == rounding["epsilon"]["fields"]


def test_steps_of_a_batch_size_that_divides_has_nothing_to_round(privsweep: Command) -> None:
    assert privsweep("steps", "--examples", "10", "--batch-size", "10") == 0
    assert privsweep.out.splitlines()[-1] == "nothing to round: the batch size divides the examples"
    assert privsweep("steps", "--examples", "10", "--batch-size", "10", "--json") == 0
    assert privsweep.json["safe"] == {"allocation": "exact", "poisson": "exact"}
    assert [rounding["steps"] for rounding in privsweep.json["roundings"]] == [1, 1]


def test_steps_ends_with_the_code_of_a_limit(privsweep: Command) -> None:
    words = ("--examples", "10", "--batch-size", "3", "--sigma", "1", "--delta", "1e-5")
    assert privsweep("steps", *words, "--limit-seconds", "1e-9") == 4
    assert "Not started" in privsweep.err


# -------------------------------------------------------------------------------- methods


def test_methods_lists_every_problem_and_method(privsweep: Command) -> None:
    assert privsweep("methods") == 0
    for name in [*(problem.name for problem in PROBLEMS), *(method.name for method in METHODS)]:
        assert name in privsweep.out


def test_methods_json_describes_every_field(privsweep: Command) -> None:
    content = privsweep.told("methods")
    assert [problem["name"] for problem in content["problems"]] == [problem.name for problem in PROBLEMS]
    for given, kind in zip(content["problems"], PROBLEMS, strict=True):
        assert [field["name"] for field in given["fields"]] == list(kind.parameters)
        for field in given["fields"]:
            assert field["domain"] == kind.parameters[field["name"]].domain
            assert (field["default"] is None) == (field["name"] not in kind.defaults())
            assert (field["monotone"] is None) == (field["name"] not in kind.monotone)
    for given, method in zip(content["methods"], METHODS, strict=True):
        assert (given["name"], given["version"]) == (method.name, method.version)
        assert given["reference"]
        assert [knob["name"] for knob in given["knobs"]] == list(method.knobs)


# --------------------------------------------------------------------------------- lookup


def test_lookup_answers_from_the_store_alone(privsweep: Command, store: Path) -> None:
    assert privsweep.told("lookup", *ONE, "--store", store)["source"] == "store"
    assert (
        privsweep("lookup", "unamplified-epsilon", "sigma=3", "delta=1e-5", "--store", store, "--json") == 0
    )
    content = privsweep.json
    assert (content["lower"], content["lower_from"]) == (0.0, None)
    assert content["upper_from"]["sigma"] == 2.0
    assert content["upper"] < math.inf


def test_lookup_of_what_nothing_covers_is_exit_code_3(privsweep: Command, store: Path) -> None:
    less_noise = ("unamplified-epsilon", "sigma=0.1", "delta=1e-5")
    assert privsweep("lookup", *less_noise, "--store", store) == 3, "a lower bound alone is not an answer"
    assert "It has: sigma 0.5 to 2, delta 1e-8 to 1e-5" in privsweep.err
    assert privsweep("lookup", "unamplified-delta", "sigma=1", "epsilon=1", "--store", store) == 3
    assert "The store has no proved answer for unamplified-delta sigma=1 epsilon=1" in privsweep.err
    assert privsweep("lookup", *ONE, "--store", "nowhere") == 2


def test_lookup_says_in_which_field_the_question_is_outside(privsweep: Command, store: Path) -> None:
    question = ("lookup", "unamplified-epsilon", "--store", store)
    assert privsweep(*question, "sigma=0.1", "delta=1e-5") == 3
    assert (
        "; with all other fields as in the question, sigma from 0.5 is covered. "
        "To estimate the cost of computing it: `" in privsweep.err
    )
    assert privsweep(*question, "sigma=1", "delta=1e-9") == 3
    assert "; with all other fields as in the question, delta from 1e-8 is covered. " in privsweep.err
    assert privsweep(*question, "sigma=1", "delta=1e-5", "adjacency=add") == 3
    assert "; with all other fields as in the question, adjacency add-remove is covered. " in privsweep.err
    assert privsweep(*question, "sigma=0.1", "delta=1e-9") == 3
    assert "with the other fields" not in privsweep.err


def test_lookup_lists_the_words_that_are_stored_and_makes_no_range_of_them(
    privsweep: Command, tmp_path: Path
) -> None:
    kind = find_problem("label-advantage")
    for mechanism, prior in (("rr", "uniform"), ("rr", "point(0.5)"), ("llp-laplace", "point(0.5)")):
        bag = {} if mechanism == "rr" else {"bag_size": 2}
        problem = kind.from_fields({"mechanism": mechanism, "prior": prior, "label_epsilon": 1.0, **bag})
        put(
            tmp_path / "store", made_up(problem, Answer.enclosure(0.1, 0.2), method=find("labels.response")())
        )
    question = ("lookup", "label-advantage", "mechanism=rr", "prior=uniform", "label_epsilon=20")
    assert privsweep(*question, "--store", tmp_path / "store") == 3
    assert "It has: mechanism llp-laplace|rr, prior point(0.5)|uniform, " in privsweep.err
    assert "; with all other fields as in the question, label_epsilon up to 1 is covered. " in privsweep.err


@pytest.mark.parametrize(
    ("closed", "delta", "code"), [(">&-", "1e-5", 0), ("2>&-", "7", 2), ("<&- >&-", "7", 2)]
)
def test_a_stream_that_the_shell_closed_changes_no_exit_code(closed: str, delta: str, code: int) -> None:
    command = f"{sys.executable} -m flows.cli epsilon --sampling none --sigma 1 --delta {delta} {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_an_answer_that_is_none_says_why_in_json_too(privsweep: Command) -> None:
    words = ("--sampling", "allocation", "--sigma", "1", "--steps", "9", "--delta", "1e-5", "--json")
    assert privsweep("epsilon", *words, "--limit-seconds", "0") == 4
    assert privsweep.json["status"] == "timeout"
    assert privsweep.json["detail"].startswith("Not started: allocation.certified may need ")


def test_steps_tells_a_large_delta_as_epsilon_does(privsweep: Command) -> None:
    words = ("--examples", "100", "--batch-size", "50", "--sigma", "1", "--delta", "0.01")
    assert privsweep("steps", *words) == 0
    assert "delta=0.01 is not below 1/examples=0.01" in privsweep.err


@pytest.mark.parametrize("by", ["name", "file"])
def test_lookup_of_a_sweep_prints_its_table(privsweep: Command, store: Path, spec: Path, by: str) -> None:
    assert privsweep("lookup", "small" if by == "name" else spec, "--store", store) == 0
    title, count, names, *rows = privsweep.out.splitlines()
    assert title == (
        "small: unamplified-epsilon with steps=1 participations=1 epochs=1 adjacency=add-remove, "
        "by unamplified.exact"
    )
    assert count == "6 problems, all with bounds"
    assert names.split() == ["sigma", "delta", "epsilon", "lower", "epsilon", "upper", "width"]
    assert [row.split()[:2] for row in rows] == [
        [sigma, delta] for sigma in ("0.5", "1", "2") for delta in ("1e-8", "1e-5")
    ]
    assert rows[3].split()[2:4] == ["4.37717", "4.37718"]


def test_lookup_of_a_sweep_in_json_has_all_digits(privsweep: Command, store: Path) -> None:
    content = privsweep.told("lookup", "small", "--store", store)
    assert content["sweep"] == "small"
    assert len(content["problems"]) == 6
    assert all(line["lower"] <= line["upper"] and line["status"] == "ok" for line in content["problems"])


def test_lookup_of_a_sweep_that_is_partly_stored_says_what_is_missing(
    privsweep: Command, store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "more.toml"
    path.write_text(SWEEP.replace("small", "more").replace("[0.5,", "[0.25, 0.5,"))
    assert privsweep("lookup", path, "--store", store) == 0
    assert "8 problems, 6 with bounds" in privsweep.out
    assert privsweep.out.count("not stored") == 2


def test_lookup_of_a_sweep_of_which_nothing_is_stored_is_exit_code_3(
    privsweep: Command, store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "other.toml"
    path.write_text(SWEEP.replace("[0.5, 1.0, 2.0]", "[7.0]"))
    assert privsweep("lookup", path, "--store", store) == 3
    assert privsweep("lookup", path, "--store", "nowhere") == 2


def test_lookup_of_an_unknown_name_suggests_a_sweep(privsweep: Command, store: Path) -> None:
    assert privsweep("lookup", "smal", "--store", store) == 2
    assert "Did you mean small?" in privsweep.err


# ------------------------------------------------------------------------------------ sql


def test_sql_prints_a_plain_table_json_or_csv(privsweep: Command, store: Path) -> None:
    query = "select sigma, delta, upper from best where sigma = 1 order by delta"
    assert privsweep("sql", query, "--store", store) == 0
    assert privsweep.out.splitlines()[0].split() == ["sigma", "delta", "upper"]
    assert len(privsweep.out.splitlines()) == 3
    rows = privsweep.told("sql", query, "--store", store)
    assert [row["delta"] for row in rows] == [1e-8, 1e-5]
    assert privsweep("sql", query, "--store", store, "--csv") == 0
    assert privsweep.out.splitlines()[2] == f"1.0,1e-05,{rows[1]['upper']!r}"


def test_sql_json_has_no_bare_token_whatever_is_selected(privsweep: Command, store: Path) -> None:
    query = (
        "select 'nan'::double as a, 'inf'::double as b, 0.5 as c, sum(steps) as c, "
        "max(finished_at) as d, null as e, [1.5] as f from results"
    )
    (row,) = privsweep.told("sql", query, "--store", store)
    assert (row["a"], row["b"], row["c"], row["c_4"], row["e"], row["f"]) == (
        None,
        "inf",
        0.5,
        6,
        None,
        [1.5],
    )
    assert privsweep("sql", query, "--store", store) == 0
    assert privsweep("sql", query, "--store", store, "--csv") == 0


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("selec 1", 2),
        ("select nothing from results", 2),
        ("select 1; select 2", 2),
        ("drop view best", 2),
        ("select * from read_csv('/etc/passwd')", 2),
        ("copy results to 'x.csv'", 2),
        (
            "select count(*) from range(100000) a, range(100000) b, range(100) c where a.range + b.range > 7",
            4,
        ),
    ],
)
def test_sql_refuses_with_one_sentence(privsweep: Command, store: Path, query: str, code: int) -> None:
    assert privsweep("sql", query, "--store", store, "--limit-seconds", "0.5") == code
    assert privsweep.err.count("\n") == 1
    assert privsweep.out == ""


@pytest.mark.parametrize(
    ("status", "code"),
    [("ok", 0), ("failed", 1), ("conflict", 1), ("not_applicable", 1), ("timeout", 4), ("out_of_memory", 4)],
)
def test_every_status_has_its_exit_code(status: str, code: int) -> None:
    assert exit_code(status) == code
