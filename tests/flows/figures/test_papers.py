"""The figures of all papers, the command `report figures PAPER`, and its old names."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli.app import COMMANDS, run
from flows.figures.figure import Figure
from flows.figures.papers import PAPERS, SWEEPS
from flows.spec.sweep import load
from storage import open_store
from tests.flows.figures.conftest import DrawnPapers
from tests.flows.small_store import Command
from tests.flows.support.figures import check_legends, check_page, check_traces, points_of

pytestmark = pytest.mark.sampled(6)

OLD_NAMES = [words.removeprefix("report ") for words, (_, sentence) in COMMANDS.items() if not sentence]
FIGURES = {figure.name: (paper, figure) for paper, figures in PAPERS.items() for figure in figures}
ALIKE = [f"audits{n}" for n in (5, 6, 7, 8)]
"""Figures that are drawn like the one before or after them."""


def figures(*papers: str, slow: str = "") -> pytest.MarkDecorator:
    """One case for each figure of some papers."""
    return pytest.mark.parametrize(
        ("paper", "figure"),
        [
            pytest.param(paper, figure, id=name, marks=[pytest.mark.thorough] if paper == slow else [])
            for name, (paper, figure) in FIGURES.items()
            if paper in papers and name not in ALIKE
        ],
    )


def report(paper: str, *arguments: object) -> int:
    return run(["report", "figures", paper, *map(str, arguments)])


def test_no_two_figures_of_all_papers_share_a_file() -> None:
    stems = [figure.stem for figures in PAPERS.values() for figure in figures]
    assert len(set(stems)) == len(stems)


def test_the_sweeps_of_a_paper_include_those_of_all_its_figures() -> None:
    for paper, figures in PAPERS.items():
        sweeps = {load(name).name for name in SWEEPS[paper]}
        assert {load(name).name for figure in figures for name in figure.sweeps} <= sweeps


# ------------------------------------------------------------------------------------ drawings


@figures("labels", "auditing", "membership", slow="labels")
def test_every_trace_is_on_the_axes_of_its_panel(paper: str, figure: Figure, papers: DrawnPapers) -> None:
    check_traces(papers[paper].pictures[figure.name])


@figures(*PAPERS, slow="labels")
def test_every_figure_is_no_empty_page_and_has_all_its_colours(
    paper: str, figure: Figure, papers: DrawnPapers, tmp_path: Path
) -> None:
    check_page(papers[paper].pictures[figure.name], tmp_path / "drawn.png")


@figures("labels", "auditing", "membership")
def test_the_legend_beside_a_row_names_its_traces_once(
    paper: str, figure: Figure, papers: DrawnPapers
) -> None:
    check_legends(papers[paper].pictures[figure.name])


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
@pytest.mark.parametrize(("paper", "name"), [("allocation", "8"), ("labels", "labels5")])
def test_the_same_store_gives_the_same_bytes_in_every_format(
    paper: str, name: str, kind: str, begins: bytes, papers: DrawnPapers, tmp_path: Path
) -> None:
    asked = ("--store", papers[paper].store, "--format", kind, "--figure", name)
    folders = tmp_path / "a", tmp_path / "b"
    assert [report(paper, *asked, "--out", folder) for folder in folders] == [0, 0]
    first, second = (next(folder.iterdir()).read_bytes() for folder in folders)
    assert first == second
    assert first.startswith(begins)
    assert len(first) > 5000


@pytest.mark.parametrize(
    ("paper", "name", "named"),
    [
        ("allocation", "9", {"figure": 9, "sweep": "figure9"}),
        ("auditing", "audits3", {"figure": "audits3", "sweeps": ["audits-alternatives"], "notes": []}),
        (
            "labels",
            "workshop1",
            {"figure": "workshop1", "sweeps": ["labels-learning", "labels-advantage"], "notes": []},
        ),
        (
            "membership",
            "membership-privacy",
            {"figure": "membership-privacy", "sweeps": ["membership-privacy"], "notes": []},
        ),
    ],
)
def test_json_says_what_was_drawn_where(
    paper: str,
    name: str,
    named: dict[str, Any],
    papers: DrawnPapers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--store", papers[paper].store, "--out", tmp_path, "--figure", name, "--json"]
    assert report(paper, *words) == 0
    figure = FIGURES[name][1]
    drawn = {"file": str(tmp_path / f"{figure.stem}.png"), "points": len(points_of(figure))}
    assert json.loads(capsys.readouterr().out) == [{**named, **drawn, "missing": {}, "failed": {}}]


# ---------------------------------------------------------------------------------- missing points


@pytest.mark.parametrize("name", [name for name, (_, figure) in FIGURES.items() if figure.sweeps])
def test_a_figure_that_is_not_stored_names_the_commands_that_compute_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paper, figure = FIGURES[name]
    store = tmp_path / "store"
    open_store(store, create=True).close()
    assert report(paper, "--store", store, "--out", tmp_path / "out", "--figure", name) == 3
    runs = " and ".join(f"`privsweep run {sweep} --store {store}`" for sweep in figure.sweeps)
    verb = "computes" if len(figure.sweeps) == 1 else "compute"
    nothing = f"Figure {name} is not drawn: nothing of it is stored in {store}"
    assert capsys.readouterr() == ("", f"privsweep: {nothing}; {runs} {verb} it.\n")
    assert list(tmp_path.iterdir()) == [store]


# ------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("alias", "paper"), [("figures", "allocation"), *zip(OLD_NAMES, list(PAPERS)[1:], strict=True)]
)
def test_a_paper_and_its_old_command_say_the_same(
    alias: str, paper: str, tmp_path: Path, privsweep: Command
) -> None:
    open_store(tmp_path / "store", create=True).close()
    options = ["--store", str(tmp_path / "store"), "--figure", PAPERS[paper][-1].name, "--json"]
    outputs = []
    for command in (["figures", paper], [alias]):
        assert privsweep("report", *command, *options) == 3
        outputs.append((privsweep.out, privsweep.err))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("privacy", "a paper in {allocation, labels, auditing, membership}, got privacy."),
        ("allocation --figure 10", "Expected --figure in {1, ..., 9}"),
        ("allocation --figure one", "Expected --figure in {1, ..., 9}"),
        ("allocation --format gif", "Expected --format in {png, svg, pdf}, got gif."),
        ("auditing --figure audits10", "Expected --figure in {audits1, audits2,"),
        ("labels --figure labels9", "Expected --figure in {labels1, labels2, "),
        ("labels --format gif", "Expected --format in {png, svg, pdf}, got gif."),
        (
            "membership --figure membership3",
            "Expected --figure in {membership1, membership2, membership-rates,",
        ),
    ],
)
@pytest.mark.parametrize("command", ["report figures", "figures"])
def test_an_unknown_paper_figure_or_format_is_refused_before_anything_is_computed(
    command: str, words: str, sentence: str, tmp_path: Path, privsweep: Command
) -> None:
    store = ["--store", str(tmp_path / "store")] if command == "figures" else []
    assert privsweep(*command.split(), *words.split(), *store, "--out", tmp_path / "out") == 2
    out, err = (privsweep.out, privsweep.err)
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert list(tmp_path.iterdir()) == []
