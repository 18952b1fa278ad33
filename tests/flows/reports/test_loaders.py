"""The picture of eight data loaders shows the stored brackets, and the committed files are up to date."""

from pathlib import Path

import pytest

from flows.answers.ask import UncoveredError
from flows.answers.question import adjacency_of
from flows.answers.training.compare import SchemeRow
from flows.answers.training.compare_output import brief
from flows.answers.training.palette import DARK, GROUNDS, LIGHT, NAMES
from flows.cli.app import run
from flows.reports.loaders import CODE, RUN, SIZES, bars, edges, picture
from privcore import Bracket
from storage import open_store
from tests.flows.small_store import Command
from tests.flows.support.pictures import SHIFT, drawing, same_texts, texts

pytestmark = pytest.mark.xdist_group("loaders")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sweep `loaders`."""
    folder = tmp_path_factory.mktemp("loaders") / "store"
    assert run(["run", "loaders", "--store", str(folder), "--engine", "serial"]) == 0
    return folder


@pytest.fixture(scope="module")
def shown(store: Path) -> list[SchemeRow]:
    with open_store(store) as opened:
        return bars(opened)


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_committed_picture_is_that_of_the_store(
    ground: str, shown: list[SchemeRow], repository: Path
) -> None:
    committed = (repository / "docs" / "pictures" / f"loaders-{ground}.svg").read_text(encoding="utf-8")
    drawn = picture(shown, ground).decode()
    assert same_texts(drawn, committed), "run make picture"
    (form, numbers), (expected, others) = drawing(drawn), drawing(committed)
    assert form == expected
    assert numbers == pytest.approx(others, abs=SHIFT)


def test_the_brackets_are_those_that_compare_prints(
    store: Path, shown: list[SchemeRow], privsweep: Command
) -> None:
    options = [word for name, text in (RUN | SIZES).items() for word in (f"--{name.replace('_', '-')}", text)]
    assert privsweep("compare", *options, "--store", store, "--json") == 0
    rows = {row["sampling"]: row for row in privsweep.json["rows"]}
    assert set(rows) == {bar.sampling for bar in shown} == set(CODE)
    for bar in shown:
        row = rows[bar.sampling]
        assert bar.problem is not None
        said = bar.ends.lower, bar.ends.upper, adjacency_of(bar.problem)
        assert said == (row["lower"], row["upper"], row["adjacency"])


@pytest.mark.parametrize(("ground", "colors"), [("light", LIGHT), ("dark", DARK)])
def test_a_loader_has_its_name_its_colour_and_its_numbers(
    ground: str, colors: dict[str, str], shown: list[SchemeRow]
) -> None:
    svg = picture(shown, ground).decode()
    for bar in shown:
        assert {NAMES[bar.sampling], CODE[bar.sampling], brief(bar.ends.lower, bar.ends.upper)} <= set(
            texts(svg)
        )
        assert svg.count(f'fill="{colors[bar.sampling]}"') == 1
    assert [bar.ends.upper for bar in shown] == sorted(bar.ends.upper for bar in shown)


def test_a_narrow_bracket_is_still_a_mark() -> None:
    low, high = edges(Bracket(lower=15.78, upper=15.78))
    assert low < 15.78 < high


def test_a_store_without_the_sweep_is_an_error(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "empty", create=True) as empty,
        pytest.raises(UncoveredError, match="run loaders"),
    ):
        bars(empty)
