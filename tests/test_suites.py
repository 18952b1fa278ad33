"""The division of the tests into suites: a sample without a path, and every named test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suites import BUDGET, CASES, RESULTS, TESTS

MODULES = {
    "test_a.py": """
import pytest

@pytest.mark.parametrize("k", range(20))
def test_many(k): pass

@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", range(5))
def test_few(k): pass

@pytest.mark.thorough
def test_expensive(): pass

@pytest.mark.parametrize("x", "abc")
class TestClass:
    @pytest.mark.parametrize("k", range(3))
    def test_method(self, x, k): pass
    def test_other(self, x): pass
""",
    "test_b.py": """
import pytest

pytestmark = pytest.mark.sampled(3)

@pytest.mark.parametrize("k", range(9))
def test_case(k): pass

def test_single(): pass
""",
    "test_c.py": "".join(f"def test_{k}(): pass\n\n" for k in range(9)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (["--seed", "20"], 2 + TESTS),
        (["--seed", "7"], 3),
        (["--seed", "4"], TESTS),
        (["--seed", "8"], 2 + TESTS + TESTS),
        (["--suite", "all"], 20 + 5 + 1 + 9 + 3 + 10 + 9),
        (["test_b.py"], 10),
        (["test_b.py", "--suite", "sample", "--seed", "7"], 3),
        (["test_a.py::test_expensive"], 1),
        (["-m", "thorough"], 1),
        (["-k", "test_other", "--seed", "20"], CASES),
    ],
)
def test_a_named_test_always_runs_and_the_sample_has_its_size(
    arguments: list[str], number: int, tmp_path: Path, repository: Path
) -> None:
    assert f"{number} passed" in ended(tmp_path, repository, *arguments)


def test_a_costly_test_has_as_many_cases_as_fit_and_soak_has_the_others(
    tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pathlib, tests.suites\ntests.suites.COSTS = pathlib.Path(__file__).with_name('costs.json')\n"
    )
    costs = {
        "test_a.py::test_many": BUDGET / 4,
        "test_a.py::test_few": 7 * BUDGET,
        "test_b.py::test_case": 0.1,
    }
    (tmp_path / "costs.json").write_text(json.dumps(costs))
    cheap = 1 + 9 + 3 + 10 + 9
    for seed, few in (("3", 0), ("4", 1)):  # a third of a case on average
        chosen = ["--suite", "all", "--seed", seed, "-m"]
        assert f"{cheap + 4 + few} passed" in ended(tmp_path, repository, *chosen, "not soak")
        assert f"{16 + 5 - few} passed" in ended(tmp_path, repository, *chosen, "soak")
    assert f"{cheap + 20 + 5} passed" in ended(tmp_path, repository, *MODULES)


def ended(folder: Path, repository: Path, *arguments: str) -> str:
    """Return the output of pytest for the modules in a folder."""
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  sampled(n)\n  thorough\n  soak\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.suites",
        "-p",
        "no:cacheprovider",
        "-q",
        *arguments,
    ]
    environment = os.environ | {"PYTHONPATH": str(repository)}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_sample_has_the_tests_that_notice_seeded_faults(repository: Path) -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    file = "tests/storage/test_parts.py"
    noticing = {of["test"] for of in found.values() if of.get("test", "").startswith(f"{file}::")}
    asked = ["-m", "pytest", "--collect-only", "-q", "--suite", "sample", "--seed", "2", file]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, *asked],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    collected = {line for line in done.stdout.splitlines() if "::" in line}
    assert noticing
    assert noticing <= collected
    assert len(collected) < TESTS + len(noticing) + 1
