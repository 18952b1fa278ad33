"""The best of several runs, asked as people tune: `--repeats` of `epsilon` and `noise`."""

from typing import Any

import pytest

import privsweep as ps
from flows.printing import rounded_down, rounded_up
from tests.flows.small_store import Command

RUN: dict[str, Any] = {"sampling": "none", "sigma": 2.0, "delta": 1e-5}
OPTIONS = ["--sampling", "none", "--sigma", "2", "--delta", "1e-5"]
LAW = "negative-binomial(0,0.01)"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_command_python_and_ask_have_the_same_ends(command: Command) -> None:
    found = ps.epsilon(**RUN, repeats=LAW)
    shown = f"epsilon in [{rounded_down(found.lower)}, {rounded_up(found.upper)}]"
    assert command("epsilon", *OPTIONS, "--repeats", LAW) == 0
    assert shown in command.out
    fields = ["phases=none(sigma=2,steps=1)", "delta=1e-5", "adjacency=add-remove", f"repeats={LAW}"]
    assert command("ask", "tuned-epsilon", *fields) == 0
    assert shown in command.out
    assert ps.epsilon(**RUN).upper < found.lower, "one run"


def test_several_noise_multipliers_are_a_table(command: Command) -> None:
    assert command("epsilon", *OPTIONS[:3], "2,3", *OPTIONS[4:], "--repeats", LAW) == 0
    assert command.out.count("tuned.certified") == 2


@pytest.mark.thorough
def test_the_noise_for_a_target_is_on_the_safe_side(command: Command) -> None:
    found = ps.noise(epsilon=3.0, sampling="none", delta=1e-5, repeats="geometric(10)")
    assert ps.epsilon(sigma=found.sigma, sampling="none", delta=1e-5, repeats="geometric(10)").upper <= 3.0
    assert found.short_sigma is not None
    assert 0.98 * found.sigma <= found.short_sigma < found.sigma
    options = ["--sampling", "none", "--delta", "1e-5", "--repeats", "geometric(10)"]
    assert command("noise", "--epsilon", "3", *options) == 0
    assert f"sigma {found.sigma:g} suffices" in command.out


def test_a_statement_says_what_is_assumed_of_the_other_runs(command: Command) -> None:
    assert command("epsilon", *OPTIONS, "--repeats", LAW, "--statement", "text") == 0
    assert "only the best run is published, and neither the others nor their number" in command.out
    assert "Not covered: a search for hyper-parameters beyond these runs" in command.out
    assert "Membership:" not in command.out, "those tests would be on one run"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["epsilon", *OPTIONS, "--repeats", "ten"], "Expected repeats in {fixed(RUNS)"),
        (["epsilon", *OPTIONS, "--repeats", "fixed(0)"], "Expected a whole number of runs"),
        (["noise", "--advantage", "0.1", "--sampling", "none", "--repeats", LAW], "Expected --epsilon with"),
        (
            ["epsilon", "--sampling", "unknown", "--sigma", "2", "--steps", "9", "--repeats", LAW],
            "repeats",
        ),
    ],
)
def test_what_has_no_answer_is_one_sentence(command: Command, words: list[str], told: str) -> None:
    assert command(*words) == 2
    assert told in command.err
    assert command.err.count("\n") == 1
