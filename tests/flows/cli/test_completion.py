"""The shell completes commands, options and names; fast, and without importing the numerics."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.cli import options
from privcore import METHODS, PROBLEMS
from privcore.allocation.params import ADJACENCY

SHELLS = ("bash", "zsh", "fish")


def complete(shell: str, words: str) -> str:
    """Return the completions of these words, in the protocol of the shell."""
    environment = os.environ | {
        "_PRIVSWEEP_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    command = [sys.executable, "-m", "flows.cli"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "wanted", "unwanted"),
    [
        ("privsweep comp", "compare", "lookup"),
        ("privsweep epsilon --method poisson.c", "poisson.certified", "poisson.pld"),
    ],
)
def test_each_shell_is_told_the_words_that_fit(shell: str, words: str, wanted: str, unwanted: str) -> None:
    told = complete(shell, words)
    assert wanted in told
    assert unwanted not in told


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("privsweep epsilon --noise-m", {"--noise-multiplier"}),
        ("privsweep ask pois", {"poisson-delta", "poisson-epsilon"}),
        ("privsweep lookup ", {"allocation-epsilon", "quickstart"}),
        ("privsweep methods allocation", {"allocation-epsilon", "allocation.certified"}),
        ("privsweep lookup --store s3://bucket/that-nobody-may-ask allocation-e", {"allocation-epsilon"}),
        ("privsweep plan allocation-f", {f"allocation-figure{n}" for n in range(1, 10)}),
        ("privsweep status ", {"quickstart"}),
        ("privsweep compare --adjacency ", {"add", "remove", "add-remove"}),
        ("privsweep noise --sampling ", {"allocation", "poisson", "none", "unknown"}),
    ],
)
def test_arguments_are_completed_by_what_may_stand_there(words: str, wanted: set[str]) -> None:
    assert wanted <= set(complete("bash", words).split())


def test_the_names_are_those_of_the_registry() -> None:
    assert options.problems("") == sorted(problem.name for problem in PROBLEMS)
    assert options.methods("") == sorted(method.name for method in METHODS)
    assert set(options.words("add-remove", "zero-out", "add", "remove")("")) == set(ADJACENCY.choices)
    assert options.problems("no-such") == []


def test_the_sweeps_are_the_embedded_ones(repository: Path) -> None:
    files = (repository / "flows" / "sweeps").glob("*.toml")
    assert options.sweeps("") == sorted(file.stem for file in files)


def test_completion_imports_nothing_heavy() -> None:
    script = (
        "import os, sys; "
        "os.environ.update(_PRIVSWEEP_COMPLETE='complete_bash', COMP_CWORD='4', "
        "COMP_WORDS='privsweep lookup --store s3://a/b x')\n"
        "from flows.cli.app import run\n"
        "try: run([])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'scipy', 'ray', 'prefect', 'duckdb', 'pyarrow', 'storage'}\n"
        "heavy |= {name for name in sys.modules if name.startswith('privcore.') and name.count('.') > 1}\n"
        "heavy.discard('privcore.training.sizes')\n"  # fractions only: the options -n and -b are parsed by it
        "print(heavy & sys.modules.keys(), len(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy, modules = done.stderr.rsplit(maxsplit=1)
    assert heavy == "set()"
    assert int(modules) < 600


@pytest.mark.soak
def test_a_key_is_answered_within_the_patience_of_a_person() -> None:
    def once() -> float:
        began = time.perf_counter()
        complete("bash", "privsweep ask allo")
        return time.perf_counter() - began

    assert min(once() for _ in range(3)) < 0.6


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_a_shell_can_be_had_without_that_shell(shell: str) -> None:
    environment = os.environ | {"_PRIVSWEEP_COMPLETE": f"source_{shell}"}
    command = [sys.executable, "-m", "flows.cli"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert f"_PRIVSWEEP_COMPLETE=complete_{shell}" in done.stdout
    assert "privsweep" in done.stdout


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    ours = tmp_path / "privsweep"
    ours.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flows.cli "$@"\n')
    ours.chmod(0o755)
    asked = (
        "source <(_PRIVSWEEP_COMPLETE=source_bash privsweep); "
        "COMP_WORDS=(privsweep run quick); COMP_CWORD=2; "
        '_privsweep_completion privsweep; echo "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == ("quickstart\n", "")
