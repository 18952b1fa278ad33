"""`privsweep report SWEEP`: self-contained, escaped, rounded outwards, complete about missing points."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from flows.answers.training.palette import LIGHT, NAMES
from flows.cli.app import run
from flows.reports import charts
from flows.reports.document import Document, Heading
from flows.reports.files import html
from flows.reports.plot import Axes, Form, Mark, Plot, axes, drawable, is_geometric
from privcore import Answer, Bracket, Status, find, find_problem
from privcore.answer import attributed
from tests.storage.made_up import epsilon, put, row

pytestmark = pytest.mark.sampled(4)

SIGMAS = (0.5, 0.7, 1.0, 2.0, 4.0)
DELTAS = (1e-8, 1e-5)
HOSTILE = "</script><script>alert(1)</script><img src=http://example.org/x> `a` | b"
SPEC = """
name = "made-up"
title = "Made up </title><script>alert(1)</script> & more"

[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]

[grid.product]
sigma = [0.5, 0.7, 1, 2, 4]
delta = [1e-8, 1e-5]
"""


class Page(HTMLParser):
    """The elements, attributes, scripts and text of a file, as a browser parses it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        inside = self._inside[-1] if self._inside else ""
        if inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif inside == "style":
            self.styles.append(data)
        else:
            self.text += data

    @property
    def programs(self) -> list[str]:
        """Scripts that would run."""
        return [content for attributes, content in self.scripts if "type" not in attributes]

    @property
    def charts(self) -> list[dict[str, Any]]:
        return [json.loads(content) for attributes, content in self.scripts if "type" in attributes]

    @property
    def marks(self) -> list[dict[str, Any]]:
        """The data of its only chart."""
        (chart,) = self.charts
        return list(chart["datasets"]["marks"])


def bracket(sigma: float, delta: float) -> tuple[float, float]:
    """Ends that are not decimals of six digits."""
    return 1 / (3 * sigma) - delta / 7, 1 / (2.7 * sigma) + delta / 7


def fill(root: Path, *, without: int = 0) -> Path:
    several = [
        row(epsilon(sigma=sigma, delta=delta), Answer.enclosure(*bracket(sigma, delta)), sweep="made-up")
        for sigma in SIGMAS
        for delta in DELTAS
    ]
    put(root, several[without:])
    return root


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "made-up.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all points of the sweep; tests must not write to it."""
    return fill(tmp_path_factory.mktemp("full") / "store")


@pytest.fixture(scope="module")
def written(spec: Path, full: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole report, in both formats."""
    folder = tmp_path_factory.mktemp("report")
    assert report(spec, "--store", full, "--out", folder / "out", "--format", "both") == 0
    return folder / "out"


def report(*arguments: object) -> int:
    return run(["report", *map(str, arguments)])


def test_a_report_asks_nothing_of_any_network(written: Path) -> None:
    page = Page(written / "made-up.html")
    asking = {"src", "href", "action", "formaction", "data", "poster", "srcset", "background", "ping"}
    assert [found for found in page.attributes if found[1] in asking] == []
    assert not {"link", "iframe", "object", "embed", "img", "base", "form"} & set(page.tags)
    style = " ".join([*page.styles, *(value for _, name, value in page.attributes if name == "style")])
    assert not re.search(r"url\(|@import", style)
    (policy,) = [value for tag, name, value in page.attributes if tag == "meta" and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert [set(chart["data"]) for chart in page.charts] == [{"name"}]  # and no address to load it from


def test_one_script_may_run_and_it_is_the_one_that_the_policy_names(written: Path) -> None:
    page = Page(written / "made-up.html")
    (program,) = page.programs
    assert program.count("could not be drawn") == 1
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    (policy,) = [value for _, name, value in page.attributes if name == "content" and "script-src" in value]
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.thorough
def test_the_same_store_gives_the_same_bytes(written: Path, spec: Path, tmp_path: Path) -> None:
    store = fill(tmp_path / "store")
    assert report(spec, "--store", store, "--out", tmp_path) == 0
    assert (tmp_path / "made-up.html").read_bytes() == (written / "made-up.html").read_bytes()


@pytest.mark.sampled(1)
def test_every_end_that_is_told_is_rounded_outwards(written: Path) -> None:
    told = {(datum["x"], float(datum["st"])): datum for datum in Page(written / "made-up.html").marks}
    assert len(told) == len(SIGMAS) * len(DELTAS)
    table = (written / "made-up.md").read_text()
    for sigma in SIGMAS:
        for delta in DELTAS:
            lower, upper = bracket(sigma, delta)
            datum = told[sigma, delta]
            assert 0 < Decimal(lower) - Decimal(datum["lo"]) < Decimal(lower) / 10**5
            assert 0 < Decimal(datum["up"]) - Decimal(upper) < Decimal(upper) / 10**5
            assert (datum["a"], datum["b"]) == (lower, upper)
            assert f"| {datum['lo']} | {datum['up']} |" in table


def test_markdown_shows_pictures_that_lie_beside_it(written: Path) -> None:
    pictures = re.findall(r"!\[.*\]\((.*)\)", (written / "made-up.md").read_text())
    assert pictures == ["made-up-unamplified-epsilon.svg"]
    assert (written / pictures[0]).read_text().startswith("<svg")
    assert (written / "made-up-unamplified-epsilon.pdf").read_bytes().startswith(b"%PDF")


def test_a_report_says_where_its_numbers_come_from(written: Path) -> None:
    for text in (Page(written / "made-up.html").text, (written / "made-up.md").read_text().replace("\\", "")):
        for word in (
            find("unamplified.exact").reference,
            "10 stored rows",
            "schema of the store",
            "commit",
            "hosts",
            "2026-11-01 12:00 UTC",
            "release of this report",
            "sigma 0.5 0.7 1 2 4; delta 1e-8 1e-5",
        ):
            assert word in text


def test_a_report_begins_with_numbers_and_a_chart_and_ends_with_a_folded_origin(written: Path) -> None:
    page = (written / "made-up.html").read_text()
    parts = (
        '<div class="headline">',
        "<figure",
        "<h2>Summary",
        '<details class="origin">',
        "release of this report",
    )
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.count("</details>") == page.count("<details")
    markdown = (written / "made-up.md").read_text()
    assert markdown.index("![") < markdown.index("## Summary")
    numbers = re.findall(r"<strong>([^<]+)</strong> ", page[places[0] : places[1]])
    assert len(numbers) == 3


ONE_RUN = """
name = "one-run"

[[grid]]
problem = "poisson-epsilon"
methods = ["poisson.certified"]
product = { sigma = 1, steps = 20, sampling_probability = 0.05, delta = 1e-5 }

[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = { sigma = SIGMA, delta = 1e-5 }
"""


@pytest.mark.parametrize(("sigma", "drawn"), [("1", True), ("2", False)])
def test_samplers_of_one_run_are_one_chart_in_their_colours(sigma: str, drawn: bool, tmp_path: Path) -> None:
    spec = tmp_path / "one-run.toml"
    spec.write_text(ONE_RUN.replace("SIGMA", sigma))
    assert run(["run", str(spec), "--store", str(tmp_path / "store"), "--engine", "serial"]) == 0
    assert report(spec, "--store", tmp_path / "store", "--out", tmp_path) == 0
    charts = Page(tmp_path / "one-run.html").charts
    assert len(charts) == drawn
    for chart in charts:
        scale = chart["layer"][0]["encoding"]["color"]["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
            NAMES[word]: LIGHT[word] for word in ("poisson", "none")
        }


def test_every_colour_of_a_chart_has_one_for_dark_screens_and_none_for_paper(written: Path) -> None:
    (style,) = Page(written / "made-up.html").styles
    dark = style[style.rindex("@media screen and (prefers-color-scheme: dark)") :]
    for chart in Page(written / "made-up.html").charts:
        used = set(re.findall(r"#[0-9a-fA-F]{6}", json.dumps({**chart, "datasets": {}})))
        assert used
        for color in used - {"#ffffff"}:
            assert f'[fill="{color}"]' in dark
            assert f'[stroke="{color}"]' in dark


def test_hostile_titles_and_reasons_stay_text(spec: Path, tmp_path: Path) -> None:
    store = fill(tmp_path / "store", without=1)
    put(store, row(epsilon(sigma=0.5, delta=1e-8), Answer.without(Status.FAILED, HOSTILE)))
    assert report(spec, "--store", store, "--out", tmp_path, "--format", "both") == 1
    page = Page(tmp_path / "made-up.html")
    assert len(page.programs) == 1
    assert "img" not in page.tags
    assert HOSTILE in page.text
    assert "Made up </title><script>alert(1)</script> & more" in page.text
    markdown = (tmp_path / "made-up.md").read_text()
    assert not re.search(r"(?<!\\)<", markdown)


def test_a_chart_with_hostile_words_cannot_end_its_element(written: Path) -> None:
    bracket = Bracket(lower=1.0, upper=2.0, lower_by=HOSTILE, upper_by=HOSTILE)
    marks = [Mark(x=x, series=HOSTILE, setting=HOSTILE, bracket=bracket) for x in (1, 2)]
    plot = Plot(name="a", title=HOSTILE, x_name="x", y_name="y", series_name=HOSTILE, marks=marks)
    path = written / "hostile.html"
    path.write_text(html(Document(name="a", blocks=[Heading(text="a", level=1), plot])))
    page = Page(path)
    assert len(page.programs) == 1
    assert page.marks[0]["by"] == HOSTILE


def test_what_failed_and_what_is_missing_is_said(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = fill(tmp_path / "store", without=3)
    put(store, row(epsilon(sigma=0.5, delta=1e-8), Answer.without(Status.TIMEOUT, "took 60 s")))
    assert report(spec, "--store", store, "--out", tmp_path, "--json") == 1
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["incomplete"] == ["2 of 10 points are not stored.", "1 of 10 points failed."]
    assert [Path(file).name for file in told["files"]] == ["made-up.html"]
    assert said.err.count("privsweep: ") == 2
    text = Page(tmp_path / "made-up.html").text
    assert "took 60 s" in text
    assert "not stored yet" in text


def test_a_contradiction_is_listed_with_both_methods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.toml"
    text = SPEC.replace("unamplified-epsilon", "poisson-epsilon").replace("delta =", "steps = 1\ndelta =")
    methods = '["poisson.certified", "poisson.renyi"]'
    path.write_text(
        text.replace('["unamplified.exact"]', methods).replace("sigma =", "sampling_probability = 1\nsigma =")
    )
    fields = {"sigma": 1.0, "delta": 1e-5, "steps": 1, "sampling_probability": 1.0}
    problem = find_problem("poisson-epsilon").from_fields(fields)
    for method, ends in (("poisson.certified", (2.0, 3.0)), ("poisson.renyi", (0.0, 1.5))):
        put(tmp_path / "store", row(problem, Answer.enclosure(*ends), method=find(method)()))
    assert report(path, "--store", tmp_path / "store", "--out", tmp_path) == 1
    assert "1 contradiction between methods." in capsys.readouterr().err
    text = Page(tmp_path / "made-up.html").text
    assert "1 lower bound above another method's upper bound" in text
    assert "poisson.certified" in text
    assert "poisson.renyi" in text


def test_simulated_answers_are_told_apart_from_proofs(tmp_path: Path) -> None:
    path = tmp_path / "drawn.toml"
    path.write_text(
        SPEC.replace("unamplified", "poisson")
        .replace("exact", "pld")
        .replace("delta =", "steps = 1\nsampling_probability = 1\ndelta =")
    )
    kind, methods = find_problem("poisson-epsilon"), [find("poisson.certified")(), find("poisson.pld")()]
    problems = [
        kind.from_fields({"sigma": sigma, "delta": 1e-5, "steps": 1, "sampling_probability": 1.0})
        for sigma in SIGMAS
    ]
    for k, problem in enumerate(problems):
        drawn = (
            Answer.enclosure(1.0, 3.0, value=2.0, confidence=0.9)
            if k
            else Answer.about(2.0, detail="a guess")
        )
        put(tmp_path / "store", row(problem, drawn, method=methods[1]))
    put(tmp_path / "store", row(problems[-1], Answer.enclosure(1.0, 2.0), method=methods[0]))
    assert report(path, "--store", tmp_path / "store", "--out", tmp_path) == 1  # the other delta is missing
    page = Page(tmp_path / "made-up.html")
    forms = sorted(datum["form"] for datum in page.marks)
    assert forms == ["confidence below 1"] * 4 + ["estimate without proof", "proved bracket"]
    assert {datum.get("c") for datum in page.marks if "below" in datum["form"]} == {"0.9"}
    assert "Diamonds are not proofs" in page.text
    assert "a guess" in page.text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("nowhere",), 2, "nowhere"),
        (
            ("unamplified-epsilon",),
            2,
            "got the problem unamplified-epsilon; `privsweep status` lists the sweeps of a store.",
        ),
        (("quickstart", "--format", "pdf"), 2, "Expected --format in {html, md, both}, got pdf."),
        (("labels-ratio",), 3, "No points of sweep labels-ratio are stored"),
        (("compare-training",), 3, "The store has no two schemes at equal settings."),
        (("compare-labels",), 3, "`privsweep run"),
        (("compare-audits",), 3, "`privsweep run"),
        (("compare-membership",), 3, "`privsweep run"),
    ],
)
def test_what_cannot_be_reported_is_one_sentence(
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
    full: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert report(*arguments, "--store", full, "--out", tmp_path / "out") == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_no_report_is_written_into_a_store(spec: Path, tmp_path: Path) -> None:
    store = fill(tmp_path / "store")
    before = sorted(path for path in store.rglob("*") if path.suffix != ".duckdb")
    assert report(spec, "--store", store, "--out", store / "reports") == 2
    assert not (store / "reports").exists()
    assert set(before) <= set(store.rglob("*"))


def test_the_word_sweep_and_the_place_of_options_do_not_matter(
    spec: Path, full: Path, written: Path, tmp_path: Path
) -> None:
    orders = (("sweep", spec, "--store", full), ("--store", full, spec))
    for k, arguments in enumerate(orders):
        folder = tmp_path / str(k)
        assert report(*arguments, "--out", folder) == 0
        assert (folder / "made-up.html").read_bytes() == (written / "made-up.html").read_bytes()


def test_without_the_packages_for_charts_there_are_tables(
    spec: Path,
    full: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(charts, "available", lambda: False)
    assert report(spec, "--store", full, "--out", tmp_path, "--format", "both") == 0
    assert "pip install 'privsweep[report]'" in capsys.readouterr().err
    page = Page(tmp_path / "made-up.html")
    assert page.programs == []
    assert "script-src 'none'" in (tmp_path / "made-up.html").read_text()
    assert "table" in page.tags
    assert "pip install" in page.text
    assert "pip install" in (tmp_path / "made-up.md").read_text()
    assert report(spec, "--store", full, "--out", tmp_path, "--figures") == 2


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no browser here")
def test_a_browser_draws_every_chart_and_complains_of_nothing(written: Path, tmp_path: Path) -> None:
    command = [
        "chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
    ]
    command += [
        "--virtual-time-budget=8000",
        f"--user-data-dir={tmp_path}",
        "--enable-logging=stderr",
        "--dump-dom",
    ]
    done = subprocess.run(
        [*command, (written / "made-up.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.count('class="marks"') == 1
    assert len(re.findall(r'<path[^>]* d="M[^"]*L[^"]*"[^>]* stroke-width="1.4"', done.stdout)) == len(DELTAS)
    assert "could not be drawn" not in re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    assert "Content Security Policy" not in done.stderr
    assert "0.7" in done.stdout


# --------------------------------------------------------------------------------- roles of fields


def test_the_most_varied_number_is_the_axis_and_what_follows_from_it_is_no_choice() -> None:
    rows = [
        {"prior": prior, "sigma": sigma, "steps": steps, "rate": 1 / steps, "same": 1}
        for prior in ("a", "b")
        for sigma in (1.0, 2.0, 3.0, 4.0)
        for steps in (10, 100, 1000)
    ]
    assert axes(rows) == Axes(x="sigma", series="steps", rest=("prior",), implied={"rate": "steps"})
    assert axes(rows[:1]) is None
    words = [{"law": law, "records": 1} for law in ("a", "b")]
    assert axes(words) == Axes(x="law", series="", rest=(), implied={})


def test_values_are_geometric_where_they_rise_like_powers() -> None:
    assert is_geometric([1e-8, 1e-5])
    assert is_geometric([0.5, 0.8, 1, 2, 4])
    assert not is_geometric([0.1 * k for k in range(1, 20)])
    assert not is_geometric(["a", "b"])


THEIRS = attributed("method", "t")


@pytest.mark.parametrize(
    ("mark", "form"),
    [
        ({"lower": 1.0, "upper": 2.0}, Form.BRACKET),
        ({"lower": 0.0, "upper": 0.0}, Form.BRACKET),
        ({"lower": 0.0, "upper": 2.0}, Form.MOST),
        ({"lower": 0.5, "upper": 1.0, "largest": 1.0}, Form.LEAST),
        ({"lower": 1.0, "upper": 1.0, "largest": 1.0}, Form.BRACKET),
        ({"lower": 0.5, "upper": float("inf")}, Form.LEAST),
        ({"lower": 0.5, "upper": 1.0, "confidence": 0.9}, Form.DOUBTFUL),
        ({"lower": 0.5, "upper": float("inf"), "confidence": 0.9}, Form.DOUBTFUL_LEAST),
        ({"lower": 0.0, "upper": 1.0, "confidence": 0.9}, Form.DOUBTFUL_MOST),
        ({"lower": 0.0, "upper": float("inf"), "value": 3.0}, Form.ESTIMATE),
        ({"lower": 0.5, "upper": 1.0, "lower_by": THEIRS}, Form.IMPORTED),
        ({"lower": 0.5, "upper": float("inf"), "confidence": 0.9, "lower_by": THEIRS}, Form.IMPORTED),
        ({"lower": 0.0, "upper": float("inf"), "value": 3.0, "lower_by": THEIRS}, Form.IMPORTED),
        ({"lower": 0.0, "upper": float("inf"), "lower_by": THEIRS}, None),
        ({"lower": 1.0, "upper": 0.5, "lower_by": THEIRS}, Form.CONFLICT),
        ({"lower": 0.0, "upper": float("inf")}, None),
    ],
)
def test_a_mark_says_what_is_known(mark: dict[str, Any], form: Form | None) -> None:
    more = {name: mark.pop(name) for name in ("largest", "value") if name in mark}
    assert Mark(x=1, series="a", bracket=Bracket(**mark), **more).form is form


def test_settings_are_drawn_whole_or_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.reports.plot.MOST_MARKS", 5)
    marks = [
        Mark(x=x, series="a", setting=setting, bracket=Bracket(lower=1.0, upper=2.0))
        for setting in ("one", "two", "three")
        for x in (1, 2)
    ]
    kept, notes = drawable(marks)
    assert [mark.setting for mark in kept] == ["one", "one", "two", "two"]
    assert notes == ["Only the first 2 of 3 settings are drawn."]


def test_kinds_of_mechanisms_that_vary_in_other_fields_have_charts_of_their_own() -> None:
    from flows.answers.sweep_table import Line
    from flows.reports.sweep_report import sweep_charts

    kind = find_problem("label-advantage")
    fields = [{"mechanism": "rr", "label_epsilon": e} for e in (0.5, 1.0, 2.0)]
    fields += [{"mechanism": "llp", "bag_size": k} for k in (2, 4)]
    lines = [
        Line(
            problem=kind.from_fields({"prior": "uniform", **each}),
            bracket=Bracket(lower=0.1, upper=0.2, lower_by="m", upper_by="m"),
        )
        for each in fields
    ]
    found = {plot.name: plot for plot in sweep_charts("s", kind, lines, [])}
    assert {name: plot.x_name for name, plot in found.items()} == {
        "s-label-advantage-rr": "label_epsilon",
        "s-label-advantage-llp": "bag_size",
    }
    assert [mark.x for mark in found["s-label-advantage-llp"].marks] == [2, 4]
