"""Verification that recomputes rows: brackets of the same question intersect, or the row is named."""

from pathlib import Path

import pyarrow as pa
import pytest

from flows.runs import recompute
from privcore import Answer, Method, Point, Problem, evaluate, find, find_problem
from storage import publish, to_table
from storage.place.located import located
from storage.schema import PROBLEM_KEY
from tests.flows.small_store import Command
from tests.storage.made_up import put, row

EXACT = find("unamplified.exact")
ASKED = [find_problem("unamplified-epsilon").from_fields({"sigma": 1.0 + k, "delta": 1e-5}) for k in range(5)]


def stored(root: Path, wrong: int = 0) -> Path:
    """A store with the answers of one method; the first ones are wrong."""
    answers = [evaluate(Point(problem=problem, method=EXACT())) for problem in ASKED]
    for k in range(wrong):
        answers[k] = Answer.enclosure(2.0 * answers[k].upper, 3.0 * answers[k].upper)
    put(root, [row(problem, answer, method=EXACT()) for problem, answer in zip(ASKED, answers, strict=True)])
    return root


def test_true_rows_have_the_same_bits(tmp_path: Path, privsweep: Command) -> None:
    store = str(stored(tmp_path / "store"))
    assert privsweep("verify", "--store", store, "--recompute", "all") == 0
    last = privsweep.out.splitlines()[-1]
    assert last == "5 brackets recomputed: 5 have the same bits, all intersect the stored ones"
    content = privsweep.told("verify", "--store", store, "--recompute", "3")
    assert content["recomputed"] == {
        "rows": 3, "equal": 3, "wider": 0, "apart": [], "not_reproduced": [], "skipped": []
    }  # fmt: skip
    assert "recomputed" not in privsweep.told("verify", "--store", store)


def test_a_drawn_row_of_a_problem_that_this_release_lacks_is_named(
    tmp_path: Path, privsweep: Command
) -> None:
    store, point = stored(tmp_path / "store"), Point(problem=ASKED[0], method=EXACT())
    table = to_table([row(ASKED[0], evaluate(point), method=EXACT())])
    place = table.column_names.index("problem")
    later = table.set_column(place, "problem", pa.array(["later"], table.schema.field(place).type))
    publish(located(store), later.replace_schema_metadata({**table.schema.metadata, PROBLEM_KEY: b"later"}))
    assert privsweep("verify", "--store", store, "--recompute", "all") == 0
    reason = "this release lacks the problem, or the row is gone"
    assert f"skipped       later, row {point.id}: {reason}" in privsweep.out


def test_another_row_is_drawn_each_time_and_its_seed_draws_it_again(
    tmp_path: Path, privsweep: Command
) -> None:
    words = ["verify", "--store", str(stored(tmp_path / "store")), "--recompute", "1", "--json"]
    seeds = set()
    for _ in range(3):
        assert privsweep(*words) == 0
        seeds.add(privsweep.json["seed"])
    assert len(seeds) == 3
    assert privsweep(*words[:-1], "--seed", "7") == 0
    assert "the rows are those of --seed 7" in privsweep.out


def test_a_wrong_row_is_named(tmp_path: Path, privsweep: Command) -> None:
    store = str(stored(tmp_path / "store", wrong=1))
    assert privsweep("verify", "--store", store, "--recompute", "all") == 1
    *_, named, last = privsweep.out.splitlines()
    point = Point(problem=ASKED[0], method=EXACT())
    assert named.startswith(f"contradiction unamplified-epsilon, unamplified.exact, row {point.id}: stored [")
    assert last == "5 brackets recomputed: 4 have the same bits, 1 contradict the stored ones"


ALLOCATION = find_problem("allocation-epsilon").from_fields({"sigma": 1.0, "steps": 10, "delta": 1e-5})
"""A question whose true epsilon is between 2.187 and 2.19."""


def told(
    tmp_path: Path,
    privsweep: Command,
    problem: Problem,
    method: Method,
    answer: Answer,
) -> tuple[int, list[str]]:
    """The exit code and the last two lines of a verification of one row."""
    put(tmp_path / "store", row(problem, answer, method=method))
    code = privsweep("verify", "--store", tmp_path / "store", "--recompute", "all")
    return code, privsweep.out.splitlines()[-2:]


def test_a_raised_lower_end_without_an_upper_end_is_not_reproduced(
    tmp_path: Path, privsweep: Command
) -> None:
    code, (named, last) = told(
        tmp_path, privsweep, ALLOCATION, find("allocation.largest")(), Answer.at_least(2.189)
    )
    assert code == 1
    assert named.startswith("not reproduced allocation-epsilon, allocation.largest, row ")
    assert named.endswith("inf]: the method does not give the stored lower end")
    assert last == "1 brackets recomputed: 0 have the same bits, 1 claim less than the stored ones"


@pytest.mark.parametrize(
    ("method", "answer", "reason"),
    [
        ("allocation.largest", Answer.at_least(2.5), "but allocation.certified proves at most 2.1898"),
        ("allocation.combined", Answer.at_most(2.0), "but allocation.certified proves at least 2.18"),
    ],
)
def test_an_end_that_another_method_excludes_is_a_contradiction(
    tmp_path: Path, privsweep: Command, method: str, answer: Answer, reason: str
) -> None:
    code, (named, last) = told(tmp_path, privsweep, ALLOCATION, find(method)(), answer)
    assert code == 1
    assert named.startswith(f"contradiction allocation-epsilon, {method}, row ")
    assert reason in named
    assert last.endswith("1 contradict the stored ones")


def test_an_end_that_differs_by_rounding_is_reproduced(tmp_path: Path, privsweep: Command) -> None:
    true = evaluate(Point(problem=ALLOCATION, method=find("allocation.largest")())).lower
    code, (_, last) = told(
        tmp_path, privsweep, ALLOCATION, find("allocation.largest")(), Answer.at_least(true * (1 + 1e-9))
    )
    assert code == 0
    assert last.endswith("0 have the same bits, all intersect the stored ones")


@pytest.mark.parametrize(("share", "code"), [(0.25, 0), (1.0001, 1)])
def test_a_bracket_of_another_processor_is_proved_by_a_smaller_tolerance(
    tmp_path: Path, privsweep: Command, share: float, code: int
) -> None:
    """The lower end is moved by a share of the distance to the truth."""
    method = find("allocation.certified")()
    coarse = evaluate(Point(problem=ALLOCATION, method=method))
    fine = evaluate(Point(problem=ALLOCATION, method=method.from_knobs({"tolerance": 1e-4})))
    moved = Answer.enclosure(
        coarse.lower + (fine.lower - coarse.lower) * share,
        coarse.upper - (coarse.upper - fine.upper) * 0.25,
    )
    found, lines = told(tmp_path, privsweep, ALLOCATION, method, moved)
    assert found == code, lines


def test_a_wider_bracket_is_true_and_counted(tmp_path: Path, privsweep: Command) -> None:
    code, (_, last) = told(tmp_path, privsweep, ASKED[0], EXACT(), Answer.enclosure(4.0, 5.0))
    assert code == 0
    assert "0 have the same bits, 1 are narrower than the stored ones, all intersect" in last


def test_a_changed_estimate_is_not_reproduced(tmp_path: Path, privsweep: Command) -> None:
    true = evaluate(Point(problem=ASKED[0], method=EXACT()))
    forged = Answer.enclosure(true.lower, true.upper, value=4.0)
    code, (named, _) = told(tmp_path, privsweep, ASKED[0], EXACT(), forged)
    assert code == 1
    assert "about 4.0, now [" in named
    assert named.endswith("the method does not give the stored estimate")


AUDIT = find_problem("audit-epsilon").from_fields(
    {"canaries": 1000, "guesses": 100, "correct": 90, "delta": 1e-5}
)
BAGS = find_problem("label-advantage").from_fields({"mechanism": "llp", "prior": "beta(2,3)", "bag_size": 8})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("problem", "method"),
    [(AUDIT, find("auditing.steinke")()), (BAGS, find("labels.sampling").from_knobs({"samples": 1000}))],
)
def test_an_interval_with_a_confidence_is_drawn_again_with_the_same_random_numbers(
    tmp_path: Path, privsweep: Command, problem: Problem, method: Method
) -> None:
    true = evaluate(Point(problem=problem, method=method))
    assert true.confidence < 1.0
    code, (_, last) = told(tmp_path / "true", privsweep, problem, method, true)
    assert (code, last) == (0, "1 brackets recomputed: 1 have the same bits, all intersect the stored ones")
    raised = Answer.at_least(1.001 * true.lower, confidence=true.confidence)
    code, (named, last) = told(tmp_path / "raised", privsweep, problem, method, raised)
    assert code == 1
    assert named.startswith("not reproduced ")
    assert f" with confidence {true.confidence}, now [" in named


def test_a_point_beyond_the_limits_of_a_sweep_is_left_out_with_a_reason(
    tmp_path: Path, privsweep: Command
) -> None:
    endless = find("labels.sampling").from_knobs({"samples": 10**9})
    claimed = Answer.at_least(0.1, confidence=0.9)
    code, (named, last) = told(tmp_path, privsweep, BAGS, endless, claimed)
    assert code == 0
    assert named.startswith("skipped       label-advantage, labels.sampling, row ")
    assert "Not started: it may need " in named
    assert named.endswith(" s, the limit is 300 s.")
    assert last.endswith("1 skipped")


def test_a_long_verification_shows_its_progress(
    tmp_path: Path, privsweep: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompute, "LINE_EVERY", 0.0)
    assert privsweep("verify", "--store", stored(tmp_path / "store"), "--recompute", "all") == 0
    lines = privsweep.err.splitlines()
    assert lines == [f"{done} of 5 rows recomputed" for done in range(5)]


@pytest.mark.parametrize(
    ("lower", "code", "word", "reason"),
    [
        (2.189, 0, "skipped ", "version 2 of the method is newer than that of this release, 1"),
        (2.5, 1, "contradiction ", "but allocation.certified proves at most 2.1898"),
    ],
)
def test_a_row_of_a_newer_version_is_left_out_unless_a_proof_excludes_it(
    tmp_path: Path,
    privsweep: Command,
    monkeypatch: pytest.MonkeyPatch,
    lower: float,
    code: int,
    word: str,
    reason: str,
) -> None:
    largest = find("allocation.largest")
    with monkeypatch.context() as newer:
        newer.setattr(largest, "version", 2)
        rows = to_table([row(ALLOCATION, Answer.at_least(lower), method=largest())])
    publish(located(tmp_path / "store"), rows)
    assert privsweep("verify", "--store", tmp_path / "store", "--recompute", "all") == code
    named, last = privsweep.out.splitlines()[-2:]
    assert named.startswith(word)
    assert reason in named
    assert last.startswith("0 brackets recomputed: ")


@pytest.mark.thorough
def test_another_seed_draws_other_rows(tmp_path: Path, privsweep: Command) -> None:
    store = str(stored(tmp_path / "store", wrong=2))
    found = set()
    for seed in range(8):
        privsweep("verify", "--store", store, "--recompute", "1", "--seed", seed)
        found.add(privsweep.out.splitlines()[-1].rpartition(", ")[2])
    assert found == {"1 contradict the stored ones", "all intersect the stored ones"}


@pytest.mark.parametrize("text", ["0", "-1", "some", "1.5", "٣"])
def test_a_sample_needs_a_number(text: str, tmp_path: Path, privsweep: Command) -> None:
    assert privsweep("verify", "--store", stored(tmp_path / "store"), f"--recompute={text}") == 2
    assert "Expected a number of rows, at least 1, or all" in privsweep.err
