"""Stores with made-up answers to every point of a paper, which each process of the tests makes once."""

from pathlib import Path

import pytest

from flows.figures.figure import Picture
from privcore import Answer, Point
from tests.flows.support.figures import Paper


class Papers(dict[str, Paper]):
    """The papers by name, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> Paper:
        """Make the store of the paper."""
        return self.setdefault(name, Paper(name, self._folder / name))


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def paper(request: pytest.FixtureRequest, papers: Papers) -> Paper:
    """The paper that a module names."""
    return papers[request.module.PAPER]


@pytest.fixture
def answers(paper: Paper) -> dict[Point, Answer]:
    return paper.answers


@pytest.fixture
def full(paper: Paper) -> Path:
    return paper.store


@pytest.fixture
def pictures(paper: Paper) -> dict[str, Picture]:
    return paper.pictures
