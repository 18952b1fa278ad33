"""Shuffled epochs that leave out examples, asked as people run them: `--drop-last` with the sizes."""

from typing import Any

import pytest

import privsweep as ps
from flows.printing import rounded_down, rounded_up
from tests.flows.small_store import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


MNIST: dict[str, Any] = {
    "sampling": "shuffling",
    "examples": 60_000,
    "batch_size": 256,
    "epochs": 10,
    "sigma": 1.1,
    "redraw": "each-epoch",
    "drop_last": True,
}


@pytest.mark.thorough
def test_both_ends_are_close_for_mnist_in_all_relations() -> None:
    zeroed, removed, replaced = (
        ps.epsilon(**MNIST, adjacency=relation, delta=1e-5)
        for relation in ("zero-out", "add-remove", "replace-one")
    )
    assert zeroed.upper <= 1.02 * zeroed.lower
    assert removed.upper <= 1.001 * removed.lower
    assert replaced.upper <= 1.16 * replaced.lower
    assert zeroed.upper < removed.lower <= replaced.upper, "a larger change of the sums"
    assert 5.35 <= zeroed.upper <= 5.387 * 1.005, "that of other programmes"


@pytest.mark.thorough
def test_a_command_and_python_answer_the_same(command: Command) -> None:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in MNIST.items() if name != "drop_last"]
    assert command("epsilon", *words, "--drop-last", "--adjacency", "add-remove", "--delta", "1e-5") == 0
    found = ps.epsilon(**MNIST, adjacency="add-remove", delta=1e-5)
    assert f"epsilon in [{found.lower:.6g}, {found.upper:.6g}]" in command.out
    assert "drop_last leaves out 96 examples of an epoch" in command.err
    run = ps.Run(**MNIST, adjacency="add-remove")
    assert run.tpr(fpr=0.01).upper <= 1.01 * run.tpr(fpr=0.01).lower


SMALL: dict[str, Any] = {"sampling": "shuffling", "examples": 1000, "sigma": 2.0, "delta": 1e-5}


def options(words: dict[str, Any]) -> list[str]:
    return [
        f"--{name.replace('_', '-')}" + ("" if word is True else f"={word}") for name, word in words.items()
    ]


def test_a_batch_size_that_divides_the_examples_drops_nothing(command: Command) -> None:
    words = {**SMALL, "batch_size": 250, "drop_last": True}
    assert command("epsilon", *options(words), "--adjacency", "zero-out") == 0
    assert "drop_last drops nothing, since batch_size divides examples" in command.err
    less = ps.epsilon(**words | {"examples": 999}, adjacency="zero-out")
    told = f"With examples=999, epsilon is in [{rounded_down(less.lower)}, {rounded_up(less.upper)}]."
    assert told in command.err
    assert ps.epsilon(**words, adjacency="zero-out").notes[-1] == told
    assert command("epsilon", *options(words), "--adjacency", "add-remove") == 2
    assert "(--drop-last with --examples and --batch-size)" in command.err


@pytest.mark.parametrize(("examples", "batch"), [(100, 100), (200, 100), (200, 1)])
def test_one_example_less_is_no_advice_for_one_batch_or_single_examples(examples: int, batch: int) -> None:
    found = ps.epsilon(
        **SMALL | {"examples": examples}, batch_size=batch, drop_last=True, adjacency="zero-out"
    )
    assert found.notes[-1] == "drop_last drops nothing, since batch_size divides examples."


def test_the_last_batch_is_kept_unless_it_is_dropped(command: Command) -> None:
    words = options({**SMALL, "batch_size": 300, "adjacency": "zero-out"})
    answers = []
    for option, sentence in (
        ((), "is kept, which is safe; drop_last would"),
        (("--keep-last",), "is kept; drop"),
    ):
        assert command("epsilon", *words, *option) == 0
        assert sentence in command.err
        answers.append(command.out)
    assert answers[0].splitlines()[:2] == answers[1].splitlines()[:2]
    assert command("epsilon", *words, "--drop-last") == 0
    assert "kept" not in command.err
    dropped = ps.epsilon(**SMALL, batch_size=300, drop_last=True, adjacency="zero-out")
    assert dropped.upper < ps.epsilon(**SMALL, batch_size=300, keep_last=True, adjacency="zero-out").upper


def test_a_statement_says_which_share_is_left_out(command: Command) -> None:
    words = options({**SMALL, "batch_size": 300, "adjacency": "zero-out", "drop_last": True})
    assert command("epsilon", *words, "--statement", "text") == 0
    told = " ".join(command.out.split())
    assert "Shuffled epochs leave out the share 0.1 of the examples, at random." in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--examples=9", "--batch-size=4", "--drop-last", "--keep-last"],
            "Expected --drop-last or --keep-last",
        ),
        (["--steps=4", "--keep-last"], "Expected examples and batch_size in place of"),
        (["--steps=4", "--examples=9", "--drop-last"], "Expected examples and batch_size in place of"),
        (
            ["--examples=3", "--batch-size=4", "--drop-last"],
            "Expected batch_size <= examples, got batch_size=4",
        ),
        (["--examples=9", "--batch-size=-4", "--drop-last"], "Expected batch_size in {1, ..."),
    ],
)
def test_words_about_the_last_batch_that_contradict_others_are_refused(
    words: list[str], sentence: str, command: Command
) -> None:
    assert command("epsilon", "--sampling", "shuffling", "--sigma", 1, "--delta", 1e-5, *words) == 2
    assert sentence in command.err
    assert command.err.count("\n") == 1


@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [
        ("adjacency", "Expected adjacency (add-remove, zero-out or replace-one)"),
        ("redraw", "or each-epoch with sampling shuffling and several epochs"),
    ],
)
def test_what_changes_the_answer_is_asked(left_out: str, sentence: str) -> None:
    words = {"adjacency": "zero-out", **MNIST}
    del words[left_out]
    with pytest.raises(ps.DomainError) as error:
        ps.epsilon(**words, delta=1e-5)
    assert sentence in str(error.value)


def test_no_theorem_covers_an_owner_of_several_examples() -> None:
    with pytest.raises(ps.DomainError, match="no theorem covers shuffling"):
        ps.epsilon(**MNIST, adjacency="zero-out", delta=1e-5, group=8)
