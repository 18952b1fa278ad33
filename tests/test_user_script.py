"""A user's script of forty lines: it passes `mypy --strict`, and it runs."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = '''
"""Choose a sampler and a noise for a budget, and keep the answers."""

from pathlib import Path

import privsweep as ps

BUDGET = 2.0


def affordable(sigma: float) -> dict[str, float]:
    """Return the upper ends of the samplers that keep the budget."""
    found = ps.compare(sigma=sigma, examples=1000, batch_size=100, epochs=2, delta=1e-5)
    return {name: each.upper for name, each in found.items() if each.upper <= BUDGET}


def stored(store: Path) -> int:
    """Return the number of answers that a sweep keeps."""
    grid = {
        "problem": "unamplified-epsilon",
        "methods": ["unamplified.exact"],
        "product": {"sigma": [1.0, 2.0], "delta": 1e-5},
    }
    report = ps.run({"name": "mine", "grid": [grid]}, store, progress=False)
    with ps.open_store(store) as opened:
        assert opened.sql("select * from best").num_rows == report.computed
    return report.computed


def main() -> None:
    answer: ps.Enclosure = ps.epsilon(sigma=1.0, delta=1e-5, sampling="none")
    least = ps.noise(epsilon=BUDGET, delta=1e-5, sampling="none").sigma
    print(f"{answer.lower:.3f} {answer.upper:.3f} {least:.3f} {stored(Path('mine'))}")
    try:
        ps.epsilon(sigma=-1.0, delta=1e-5, sampling="none")
    except ps.DomainError as error:
        print(error)
    problem = ps.find_problem("unamplified-epsilon").from_fields({"sigma": 1.0, "delta": 1e-5})
    try:
        ps.Point(problem=problem, method=ps.find("unamplified.exact"))  # type: ignore[arg-type]
    except ps.DomainError as error:
        print(error)


main()
'''
PRINTED = """\
4.377 4.377 1.995 2
Expected sigma in [0.001, 1000000], got sigma=-1.0.
Expected a method such as find("allocation.certified")(), got the class UnamplifiedExact.
"""


@pytest.mark.thorough
def test_it_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == (PRINTED, "")


@pytest.mark.thorough
def test_the_end_of_a_short_script_is_silent(tmp_path: Path) -> None:
    script = "import privsweep as ps; ps.noise(epsilon=1, delta=1e-5, sampling='none'); ps.open_store, ps.run"
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.soak
def test_it_passes_a_strict_type_check(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(SCRIPT.replace("sigma=1.0, delta=1e-5", 'sigma="1", delta=1e-5', 1))
    command = [sys.executable, "-m", "mypy", "--strict", "script.py", "wrong.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found, end = ended.stdout.splitlines()
    assert found.startswith("wrong.py:")
    assert 'Argument "sigma" to "epsilon" has incompatible type "str"' in found
    assert end.startswith("Found 1 error in 1 file")
