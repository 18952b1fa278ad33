"""Stores with made-up answers to every point of a paper, which each process of the tests makes once."""

from pathlib import Path

import pytest

from flows.figures.figure import Picture
from privcore import Answer, Point
from tests.flows.support.figures import DrawnPaper


class DrawnPapers(dict[str, DrawnPaper]):
    """The papers by name, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> DrawnPaper:
        """Make the store of the paper."""
        return self.setdefault(name, DrawnPaper(name, self._folder / name))


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> DrawnPapers:
    return DrawnPapers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def paper(request: pytest.FixtureRequest, papers: DrawnPapers) -> DrawnPaper:
    """The paper that a module names."""
    return papers[request.module.PAPER]


@pytest.fixture
def answers(paper: DrawnPaper) -> dict[Point, Answer]:
    return paper.answers


@pytest.fixture
def full(paper: DrawnPaper) -> Path:
    return paper.store


@pytest.fixture
def pictures(paper: DrawnPaper) -> dict[str, Picture]:
    return paper.pictures
