"""A sampler is one file and one line: a made-up one, in a copy of the code, is answered at every door."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privcore import Point, evaluate, find, find_problem

pytestmark = pytest.mark.thorough

PHASE = '''
"""Steps whose batch includes each example by a fair coin."""

from dataclasses import dataclass
from typing import Annotated

from privcore import params
from privcore.training.batches import Drawn
from privcore.training.samplers import Bounds, poisson


class Coins(Drawn):
    """Steps that include each example by a fair coin."""

    name = "coins"
    about = "if a fair coin decides whether an example is in a step."

    steps: Annotated[int, params.STEPS]
    epochs: Annotated[int, params.EPOCHS] = 1

    def step(self, relation: str) -> Bounds:
        return poisson(relation, self.s, 0.5)
'''
LINE = '    "coins": Sampler("coins:Coins", "DataLoader(sampler=FairCoins())", "fair coins"),\n'
SWEEP = """
name = "coins"

[[grid]]
problem = "coins-epsilon"
methods = ["runs.certified"]

[grid.product]
sigma = [1, 2]
steps = [10]
delta = [1e-5]
adjacency = ["add-remove"]
"""
SAME = 1e-9


@pytest.fixture(scope="module")
def code(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code with the phase and its line."""
    folder = tmp_path_factory.mktemp("code")
    for package in ("privcore", "storage", "tasks", "flows", "privsweep"):
        shutil.copytree(repository / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "privcore/training/coins.py").write_text(PHASE)
    table = folder / "privcore/stored_names.py"
    start = "SAMPLERS = {\n"
    assert table.read_text().count(start) == 1
    table.write_text(table.read_text().replace(start, start + LINE))
    return folder


def python(code: Path, *words: str) -> str:
    """Run Python on the copy, and return its output."""
    env = {**os.environ, "PYTHONPATH": str(code), "PRIVSWEEP_TABLE": "none", "NO_COLOR": "1"}
    words = (sys.executable, *words)
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=env, cwd=code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(code: Path, *words: str) -> str:
    """Run a command of the copy, and return its output."""
    return python(code, "-c", "from flows.cli.entry import main; main()", *words)


@pytest.fixture(scope="module")
def upper() -> float:
    """The upper end of epsilon at sigma = 1, from Poisson sampling with probability 1/2."""
    fields = {"sigma": 1.0, "steps": 10, "sampling_probability": 0.5, "delta": 1e-5}
    problem = find_problem("poisson-epsilon").from_fields(fields)
    return evaluate(Point(problem=problem, method=find("poisson.certified")())).upper


def test_commands_answer_it(code: Path, upper: float) -> None:
    run = ("--sampling", "coins", "--sigma", "1", "--steps", "10", "--adjacency", "add-remove")
    found = json.loads(command(code, "epsilon", *run, "--delta", "1e-5", "--json"))
    assert found["problem"] == "coins-epsilon"
    assert found["lower"] <= upper * (1.0 + SAME)
    assert upper <= found["upper"] * 1.01
    phases = ("--run", "coins(sigma=1,steps=10)", "--adjacency", "add-remove")
    profile = json.loads(command(code, "profile", *phases, "--delta", "1e-5", "--json"))
    assert profile["profile"][0]["upper"] == found["upper"]


def test_python_answers_it(code: Path, upper: float) -> None:
    asked = 'ps.epsilon(sigma=1, steps=10, delta=1e-5, sampling="coins", adjacency="add-remove")'
    found = float(python(code, "-c", f"import privsweep as ps; print({asked}.upper)"))
    assert found == pytest.approx(upper, rel=0.01)


def test_a_sweep_sql_and_the_page_answer_it(code: Path, upper: float, tmp_path: Path) -> None:
    (tmp_path / "coins.toml").write_text(SWEEP)
    store = ("--store", str(tmp_path / "store"))
    command(code, "run", str(tmp_path / "coins.toml"), *store, "--engine", "serial")
    stored = "select upper from coins_epsilon where sigma = 1"
    fields = "sigma := 1, steps := 10, delta := 1e-5, adjacency := 'add-remove'"
    computed = f"select unnest(certified_epsilon(sampling := 'coins', {fields}))"
    for query in (stored, computed):
        (row,) = json.loads(command(code, "sql", query, *store, "--json"))
        assert row["upper"] == pytest.approx(upper, rel=0.01)
    command(code, "page", "build", *store, "--out", str(tmp_path / "page"))
    catalogue = json.loads((tmp_path / "page" / "catalogue.json").read_text())
    assert catalogue["problems"]["coins-epsilon"]["rows"] == 2
    (tab,) = [tab for tab in catalogue["tabs"] if "coins-epsilon" in tab["problems"]]
    assert tab["title"] == "Lookup table"
