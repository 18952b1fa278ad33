"""Verification that recomputes rows: brackets of the same question intersect, or the row is named."""

import json
from pathlib import Path

import pytest

from flows.cli.app import run
from privcore import Answer, Point, evaluate, find, find_problem
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


def test_true_rows_have_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(stored(tmp_path / "store"))
    assert run(["verify", "--store", store, "--recompute", "all"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "5 brackets recomputed: 5 have the same bits, all intersect the stored ones"
    assert run(["verify", "--store", store, "--recompute", "3", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["recomputed"] == {"rows": 3, "equal": 3, "apart": [], "skipped": []}
    assert run(["verify", "--store", store, "--json"]) == 0
    assert "recomputed" not in json.loads(capsys.readouterr().out)


def test_a_wrong_row_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(stored(tmp_path / "store", wrong=1))
    assert run(["verify", "--store", store, "--recompute", "all"]) == 1
    *_, named, last = capsys.readouterr().out.splitlines()
    point = Point(problem=ASKED[0], method=EXACT())
    assert named.startswith(f"contradiction unamplified-epsilon, unamplified.exact, row {point.id}: stored [")
    assert last == "5 brackets recomputed: 4 have the same bits, 1 contradict the stored ones"


@pytest.mark.thorough
def test_another_seed_draws_other_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(stored(tmp_path / "store", wrong=2))
    found = set()
    for seed in range(8):
        run(["verify", "--store", store, "--recompute", "1", "--seed", str(seed)])
        found.add(capsys.readouterr().out.splitlines()[-1].rpartition(", ")[2])
    assert found == {"1 contradict the stored ones", "all intersect the stored ones"}


@pytest.mark.parametrize("text", ["0", "-1", "some", "1.5", "٣"])
def test_a_sample_needs_a_number(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--store", str(stored(tmp_path / "store")), f"--recompute={text}"]) == 2
    assert "Expected a number of rows, at least 1, or all" in capsys.readouterr().err
