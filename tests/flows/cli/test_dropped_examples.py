"""Shuffled epochs that leave out examples, asked as people run them: `--drop-last` with the sizes."""

from typing import Any

import pytest

import privsweep as ps
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
    assert 5.38 <= zeroed.upper <= 5.387 * 1.005, "that of another programme, with the error of its grid"


@pytest.mark.thorough
def test_a_command_and_python_answer_the_same(command: Command) -> None:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in MNIST.items() if name != "drop_last"]
    assert command("epsilon", *words, "--drop-last", "--adjacency", "add-remove", "--delta", "1e-5") == 0
    found = ps.epsilon(**MNIST, adjacency="add-remove", delta=1e-5)
    assert f"epsilon in [{found.lower:.6g}, {found.upper:.6g}]" in command.out
    assert "drop_last leaves out 96 examples of an epoch" in command.err
    run = ps.Run(**MNIST, adjacency="add-remove")
    assert run.tpr(fpr=0.01).upper <= 1.01 * run.tpr(fpr=0.01).lower


def test_a_batch_size_that_divides_the_examples_drops_nothing(command: Command) -> None:
    words = [
        "--sampling",
        "shuffling",
        "--examples",
        1000,
        "--batch-size",
        100,
        "--sigma",
        2,
        "--delta",
        1e-5,
    ]
    assert command("epsilon", *words, "--adjacency", "zero-out", "--drop-last") == 0
    assert "drop_last drops nothing, since batch_size divides examples" in command.err
    assert command("epsilon", *words, "--adjacency", "add-remove", "--drop-last") == 2


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
