"""A noise multiplier next to brackets that were imported: none of their ends is printed as computed."""

from pathlib import Path

import pytest

from privcore import Answer
from tests.flows.small_store import Command
from tests.storage.made_up import claimed, imported


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def imported_at(root: Path, *, lower: float, upper: float) -> str:
    """Import a bracket at the noise that is found without a store; return the version of its table."""
    ends = Answer.enclosure(lower, upper)
    fields = {"sigma": 0.78595, "steps": 100, "delta": 1e-6}
    return imported(root, claimed("allocation-epsilon", "allocation.certified", ends, **fields)).version


ASKED = ("noise", "--epsilon", 2, "--sampling", "allocation", "--steps", 100, "--delta", 1e-6, "--store")


def test_an_imported_end_is_never_printed_as_computed(command: Command, tmp_path: Path) -> None:
    assert command(*ASKED, tmp_path / "none") == 0
    without = command.out
    assert "sigma 0.78595 suffices: epsilon is at most 1.9954" in without
    imported_at(tmp_path / "store", lower=0.5, upper=1.99987)
    assert command(*ASKED, tmp_path / "store") == 0
    assert (command.out, command.err) == (without, "")


def test_a_wider_imported_bracket_is_named_where_it_raises_the_noise(
    command: Command, tmp_path: Path
) -> None:
    version = imported_at(tmp_path / "store", lower=0.5, upper=2.5)
    assert command(*ASKED, tmp_path / "store", "--json") == 0
    assert command.json["sigma"] > 0.78595
    assert "At sigma 0.78595, `privsweep epsilon` prints an upper end of 2.5 (source: store, " in command.err
    assert f"imported from the table {version}), so more noise is recommended." in command.err


def test_an_imported_bracket_that_contradicts_the_computed_one_is_an_error(
    command: Command, tmp_path: Path
) -> None:
    version = imported_at(tmp_path / "store", lower=1.999, upper=1.9998)
    assert command(*ASKED, tmp_path / "store") == 2
    assert "A stored and a computed end contradict one another" in command.err
    assert f"`privsweep table remove {version}` takes that import back" in command.err
