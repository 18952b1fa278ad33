"""The command `report figures PAPER`, and its old names."""

from pathlib import Path

import pytest

from flows.cli.app import COMMANDS, run
from flows.figures.papers import PAPERS
from storage import open_store

OLD_NAMES = [words.removeprefix("report ") for words, (_, sentence) in COMMANDS.items() if not sentence]


def test_no_two_figures_of_all_papers_share_a_file() -> None:
    stems = [figure.stem for figures in PAPERS.values() for figure in figures]
    assert len(set(stems)) == len(stems)


@pytest.mark.parametrize(
    ("alias", "paper"), [("figures", "allocation"), *zip(OLD_NAMES, list(PAPERS)[1:], strict=True)]
)
def test_a_paper_and_its_old_command_say_the_same(
    alias: str, paper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_store(tmp_path / "store", create=True).close()
    options = ["--store", str(tmp_path / "store"), "--figure", PAPERS[paper][-1].name, "--json"]
    outputs = []
    for command in (["figures", paper], [alias]):
        assert run(["report", *command, *options]) == 3
        outputs.append(capsys.readouterr())
    assert outputs[0] == outputs[1]


def test_an_unknown_paper_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "figures", "privacy"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "{allocation, labels, auditing, membership}" in err
