"""A sweep file that is wrong is refused in one sentence that names its key, before anything starts."""

import json
import time
from pathlib import Path

import pytest

from flows.cli import run

GOOD = """name = "good"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [0.5, 1, 2], steps = 100, delta = 1e-5}
"""


def refused(spec: Path, capsys: pytest.CaptureFixture[str], command: str = "run") -> tuple[int, str]:
    """Return the exit code and the one sentence on standard error; nothing may have been started."""
    store = spec.parent / "store"
    code = run([command, str(spec), "--store", str(store)])
    captured = capsys.readouterr()
    assert not captured.out
    assert not store.exists()
    assert len(captured.err.strip().splitlines()) == 1
    return code, captured.err


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "good"', 'name = "good"\nfrobnicate = 1', "frobnicate"),
        ("sigma =", "sgima =", "did you mean sigma?"),
        ("[0.5, 1, 2]", '"1"', "sigma"),
        ("[0.5, 1, 2]", "[0.5, true]", "sigma"),
        ("[0.5, 1, 2]", "[0.5, nan]", "sigma"),
        ("[0.5, 1, 2]", "[0.5, -1]", "sigma"),
        ("[0.5, 1, 2]", "[0.5, -0.0]", "sigma"),
        ("[0.5, 1, 2]", "[0.5, 1e-320]", "sigma"),
        ("[0.5, 1, 2]", "[]", "sigma"),
        ("[0.5, 1, 2]", "{geometric = [0.5, 2]}", "sigma"),
        ("[0.5, 1, 2]", "{gometric = [0.5, 2, 3]}", "did you mean geometric?"),
        ("steps = 100", "steps = 0", "Expected steps in {1, ..., 1000000000}, got steps=0."),
        ("steps = 100", "steps = 1.5", "steps"),
        ("steps = 100", "steps = 100, participations = [1, 101]", "participations <= steps"),
        ("1e-5", "0", "delta"),
        ("1e-5", "1", "delta"),
        ("1e-5", "-1e-5", "delta"),
        (", delta = 1e-5", "", "delta"),
        ("unamplified-epsilon", "unamplified-epsilom", "unamplified-epsilon?"),
        ("unamplified.exact", "unamplified.exakt", "unamplified.exact?"),
        ('["unamplified.exact"]', '["allocation.certified"]', "allocation.certified"),
        ('["unamplified.exact"]', '[{name = "unamplified.exact", tolerance = 0.1}]', "tolerance"),
        ('"good"', '"../good"', "name"),
        ("delta = 1e-5}", "delta = 1e-5", "line"),
    ],
)
def test_a_wrong_file_is_refused_with_exit_code_2_and_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, old: str, new: str, expected: str
) -> None:
    assert old in GOOD
    spec = tmp_path / "sweep.toml"
    spec.write_text(GOOD.replace(old, new))
    code, sentence = refused(spec, capsys, command)
    assert code == 2
    assert expected in sentence
    assert str(spec) in sentence


def test_a_grid_of_a_trillion_points_is_counted_and_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "sweep.toml"
    axes = "sigma = {linear = [1, 2, 1000000]}, steps = {range = [1, 1000000, 1]}"
    spec.write_text(GOOD.replace("sigma = [0.5, 1, 2], steps = 100", axes))
    began = time.monotonic()
    code, sentence = refused(spec, capsys)
    assert time.monotonic() - began < 2.0
    assert code == 2
    assert "1,000,000,000,000 points" in sentence
    assert "grid 1" in sentence


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, sentence = refused(tmp_path / "absent.toml", capsys)
    assert code == 2
    assert "absent.toml" in sentence


def test_where_excludes_contradictory_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "sweep.toml"
    wider = GOOD.replace("steps = 100", "steps = 3, participations = [1, 3, 5]")
    spec.write_text(wider + 'where = "participations <= steps"\n')
    assert run(["plan", str(spec), "--store", str(tmp_path / "store"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == 6


def test_where_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "sweep.toml"
    spec.write_text(GOOD + "where = \"__import__('os').system('true')\"\n")
    code, sentence = refused(spec, capsys)
    assert code == 2
    assert "where" in sentence
