"""Charts of reports: only proved bounds look proved, and every file describes its content."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.reports import charts
from flows.reports.charts import data, tooltip
from flows.reports.document import Document, Heading, TextTable
from flows.reports.files import html, write
from flows.reports.plot import MOST_WORDS, Ends, Form, Mark, Plot, axes, captions
from flows.reports.tables import of_conflicts
from privcore import Bracket, DomainError, find_problem
from privcore.answer import attributed

pytestmark = pytest.mark.sampled(3)

Bounds = Sequence[tuple[float, float]]


def mark(x: float, lower: float, upper: float, **more: Any) -> Mark:
    by, confidence = more.pop("method", "m"), more.pop("confidence", 1.0)
    bracket = Bracket(lower=lower, upper=upper, confidence=confidence, lower_by=by, upper_by=by)
    return Mark(**{"x": x, "series": "a", "bracket": bracket, **more})


def plot(marks: Sequence[Mark], **more: Any) -> Plot:
    return Plot(name="c", title="Known", x_name="x", y_name="y", series_name="s", marks=marks, **more)


def along(bounds: Bounds) -> Plot:
    """Brackets at 1, 2, 3, ..."""
    return plot([mark(x, *ends) for x, ends in enumerate(bounds, 1)])


def curves(drawn: Plot, kind: str) -> list[str]:
    """The pieces of the path of a kind of mark, which begin with M."""
    svg = charts.drawn(drawn, "svg", drawn.settings[0]).decode()
    groups = re.findall(rf'class="mark-{kind} role-mark[^"]*".*?</g>', svg, flags=re.DOTALL)
    return [
        piece
        for group in groups
        for path in re.findall(r' d="([^"]*)"', group)
        for piece in path.split("M")[1:]
    ]


@pytest.mark.parametrize(
    "middle", [(0.1, math.inf), (3.0, 2.5)], ids=["without an upper end", "contradictory"]
)
def test_no_curve_passes_a_place_where_an_end_is_not_known(middle: tuple[float, float]) -> None:
    drawn = along([(1.0, 2.0), (1.0, 2.0), middle, (1.0, 2.0), (1.0, 2.0)])
    for kind in ("line", "area"):
        pieces = [piece for piece in curves(drawn, kind) if "L" in piece]
        assert len(pieces) == 2


@pytest.mark.thorough
def test_a_band_breaks_off_where_its_lower_end_is_nothing() -> None:
    drawn = along([(1.0, 2.0), (1.0, 2.0), (0.0, 2.0), (1.0, 2.0), (1.0, 2.0)])
    assert len([piece for piece in curves(drawn, "area") if "L" in piece]) == 2
    assert len([piece for piece in curves(drawn, "line") if "L" in piece]) == 1  # upper ends are known


def test_lower_bounds_alone_have_no_place_in_the_line_of_upper_ends() -> None:
    drawn = along([(1.0, 2.0), (0.1, math.inf)])
    bracket, least = data(drawn, Ends(drawn))
    assert bracket["e"] == 2.0
    assert "e" not in least


def test_a_contradiction_is_no_bracket() -> None:
    drawn = along([(1.0, 2.0), (3.0, 2.5)])
    assert drawn.marks[1].form is Form.CONFLICT
    assert drawn.marks[1].shown == 3.0  # the larger of both
    assert "Squares are contradictions" in " ".join(captions(drawn))


def test_imported_numbers_of_every_kind_name_their_table_and_only_intervals_have_a_bar() -> None:
    imported = [
        Bracket(lower=1.0, upper=2.0, upper_by=attributed("method", "2020-a")),
        Bracket(lower=1.0, confidence=0.95, lower_by=attributed("method", "2020-b")),
        Bracket(lower_by=attributed("method", "2020-c")),
    ]
    own = Bracket(lower=1.0, confidence=0.95)
    marks = [Mark(x=x, series="a", bracket=each, value=1.5) for x, each in enumerate([*imported, own])]
    drawn = plot(marks)
    *found, last = data(drawn, Ends(drawn))
    assert [datum["im"] for datum in found] == ["2020-a", "2020-b", "2020-c"]
    assert {datum["form"] for datum in found} == {Form.IMPORTED}
    assert ["a" in datum for datum in found] == [True, False, False]
    assert ["e" in datum for datum in found] == [True, True, False], "a line joins bounds, not estimates"
    assert found[2]["y"] == 1.5
    assert (last["form"], "im" in last) == (Form.DOUBTFUL_LEAST, False)
    assert "from the lookup table 2020-a and 2020-b and 2020-c" in " ".join(captions(drawn))
    assert tooltip(drawn)[-1].to_dict()["title"] == "lookup table"


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        (
            [(0.0, 0.0), (1.0, 2.0), (100.0, 200.0)],
            "Numbers that are 0, or less than 1e-12 of the largest number",
        ),
        ([(1e-9, 1.0), (50.0, 60.0)], "Bars and bands that reach an edge of the chart continue beyond it."),
        ([(math.inf, math.inf), (1.0, 2.0)], "Infinite numbers are drawn at the upper edge."),
    ],
)
def test_what_the_axis_cannot_show_is_said(bounds: Bounds, sentence: str) -> None:
    assert sentence in " ".join(captions(along(bounds)))
    assert sentence not in " ".join(captions(along([(1.0, 2.0), (2.0, 3.0)])))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "bounds",
    [
        [(math.inf, math.inf), (math.inf, math.inf)],
        [(5e-324, 5e-324), (1e308, 1.7e308)],
        [(-1.0, 2.0), (0.0, 0.0)],
    ],
)
def test_extreme_ends_are_drawn_within_the_edges(bounds: Bounds) -> None:
    wide = [mark(1, 1.0, 2.0, setting="wide"), mark(2, 100.0, 200.0, setting="wide")]
    drawn = plot([*wide, *(mark(x, *ends, setting="extreme") for x, ends in enumerate(bounds))])
    ends = Ends(drawn)
    for datum, each in zip(data(drawn, ends), drawn.marks, strict=True):
        floor, ceiling = ends.edges[each.setting]
        assert all(floor <= datum[key] <= ceiling < math.inf for key in ("y", "a", "b") if key in datum)
    assert html(Document(name="a", blocks=[Heading(text="a", level=1), drawn]))


def test_simulations_of_several_methods_are_lines_of_their_own() -> None:
    several = [
        mark(x, y, y + 1, method=m, confidence=0.9) for x in (1, 2, 3) for m, y in (("p", 1), ("q", 5))
    ]
    drawn = plot(several)
    paths: dict[int, list[str]] = {}
    for datum in data(drawn, Ends(drawn)):
        paths.setdefault(datum.get("p", 0), []).append(datum["by"])
    assert sorted(paths.values()) == [["p"] * 3, ["q"] * 3]


@pytest.mark.parametrize("series", [list(range(1, 13)), [f"word {k}" for k in range(20)]])
def test_no_two_series_have_the_same_colour(series: list[Any]) -> None:
    drawn = plot([mark(x, 1.0, 2.0, series=each) for each in series for x in (1, 2)])
    found = charts.spec(drawn)["layer"][0]["encoding"]["color"]["scale"]
    assert len(set(found["range"])) == len(found["domain"]) == len(series)


def test_words_that_colours_cannot_tell_apart_are_chosen_from_the_menu() -> None:
    few, many = ([f"point(0.{k})" for k in range(1, 1 + n)] for n in (MOST_WORDS, MOST_WORDS + 1))
    for priors, series in ((few, "prior"), (many, "level")):
        found = axes(
            [
                {"size": size, "prior": prior, "level": level}
                for size in range(20)
                for prior in priors
                for level in (0.1, 0.2)
            ]
        )
        assert found is not None
        assert found.series == series


# ------------------------------------------------------------------------------------------- as files


def document() -> Document:
    several = [mark(x, y, y + 1, setting=f"delta={y}") for y in (1, 2) for x in (1, 2)]
    rows = TextTable(title="Rows <all>", names=["x"], rows=[["1"]] * 30)
    return Document(
        name="r", blocks=[Heading(text="R", level=1), plot(several), rows], source="sweep made-up"
    )


def test_a_figure_says_what_it_shows_and_where_it_comes_from(tmp_path: Path) -> None:
    written = write(document(), tmp_path, "md", figures=True)
    assert [Path(each["file"]).name for each in written["figures"]] == ["c.svg"]
    svg = (tmp_path / "c.svg").read_text()
    for words in ("Known: delta=1", "sweep made-up", "proved at the dots"):
        assert words in re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", svg))
    assert "1 more setting" in (tmp_path / "r.md").read_text()


def test_every_setting_can_be_a_file(tmp_path: Path) -> None:
    written = write(document(), tmp_path, "md", figures=True, all_settings=True)
    assert {Path(each["file"]).name: each["setting"] for each in written["figures"]} == {
        "c.svg": "delta=1",
        "c-2.svg": "delta=2",
    }
    assert "Known: delta=2" in (tmp_path / "c-2.svg").read_text()
    assert (tmp_path / "c-2.pdf").read_bytes().startswith(b"%PDF")
    assert "](c-2.svg)" in (tmp_path / "r.md").read_text()


def test_a_link_to_a_report_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "r.html").symlink_to(tmp_path / "elsewhere.html")
    write(document(), tmp_path, "html", figures=False)
    assert (tmp_path / "r.html").is_symlink()
    assert (tmp_path / "elsewhere.html").read_text().startswith("<!doctype html>")


def test_nothing_is_written_where_one_of_the_files_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "c.svg").mkdir()
    with pytest.raises(DomainError, match="got the folder"):
        write(document(), tmp_path, "both", figures=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.svg"]


def test_reports_are_not_written_to_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DomainError, match="got the address"):
        write(document(), Path("s3://bucket/reports"), "html", figures=False)
    assert list(tmp_path.iterdir()) == []


def test_who_cannot_see_is_told_what_charts_and_tables_are() -> None:
    page = html(document()).split("<script>")[0]  # behind it is the program
    assert '"description":"Known. Bands reach' in page
    assert page.count("<table>") == page.count("<caption") == 1
    assert page.count("<th") - page.count("<thead") == page.count('<th scope="col"')
    assert 'role="region" tabindex="0" aria-label="Rows &lt;all&gt;"' in page


# -------------------------------------------------------------------------------------- captions


def test_a_small_contradiction_is_told_with_all_digits() -> None:
    problem = find_problem("unamplified-epsilon").from_fields({"sigma": 1.0, "delta": 1e-5})
    found = {
        "problem_id": "p",
        "problem": problem.name,
        "lower": 2.0000000000000004,
        "lower_method": "one",
        "upper": 2.0,
        "upper_method": "other",
        "lower_import": None,
        "upper_import": None,
    }
    (row,) = of_conflicts([found], {"p": problem}).rows
    assert row[2:] == ["2.0000000000000004", "one", "2", "other"]


def test_a_report_of_a_damaged_store_says_so() -> None:
    from flows.reports.stored import provenance

    def words(*, degraded: bool) -> str:
        blocks = provenance([], degraded=degraded)
        return " ".join(block.text for block in blocks if not isinstance(block, TextTable))

    assert "skipped" not in words(degraded=False)
    assert "Damaged and missing parts of the store were skipped" in words(degraded=True)
