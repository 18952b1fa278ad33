"""Texts of the page around the numbers: stored values, copies, schemes, chart, downloads."""

import io
import json
import re
import shlex
import urllib.request
from contextlib import redirect_stdout
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from flows.cli.app import run
from flows.printing import rounded_down, rounded_up
from flows.spec.sweep import parse
from privcore import find_problem
from storage import open_store
from storage.table.lookup_table import lookup_table, read_lookup_table
from tests.flows.page.browser import call, click, complaints, copied, text, visit, wait

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

ALLOCATION = "#problem=allocation-epsilon&sigma=2&steps=100&delta=1e-6"


def test_outside_of_what_is_stored_it_says_what_is_and_how_to_extend_it(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(
        browser,
        f"{page}#problem=label-advantage&mechanism=llp-laplace&prior=uniform&bag_size=3&label_epsilon=9",
    )
    wait(browser, "#number")
    assert "Stored is label_epsilon 0.5, 1, 2, 4." in text(browser, "outside")
    visit(browser, f"{page}#problem=shuffling-epsilon&sigma=2&steps=77&delta=1e-6&adjacency=zero-out")
    assert "The store has no bound" in wait(browser, "#number").text
    assert "Stored is steps 10, 100." in text(browser, "outside")
    sweep = browser.find_element(By.ID, "extension").get_property("textContent")
    asked = parse(str(sweep).encode(), "extend.toml")
    (grid,) = asked.grids
    assert grid.problem is find_problem("shuffling-epsilon")
    assert copied(browser, "Command line").startswith("privsweep ask shuffling-epsilon sigma=2 steps=77 ")
    browser.execute_script("scrollTo(0, 0)")  # from below the answer, which stays in view
    click(browser, "#nearest")
    assert "ε ≥" in text(browser, "number")
    assert browser.find_element(By.ID, "exact-steps").get_property("value") == "100"


def test_where_only_a_lower_end_is_known_the_copied_command_computes(
    browser: webdriver.Chrome, page: str
) -> None:
    visit(browser, f"{page}#problem=allocation-epsilon&sigma=0.5&steps=100&delta=1e-6")
    assert wait(browser, "#number").text.startswith("ε ≥ ")
    assert copied(browser, "Command line").startswith("privsweep ask ")  # lookup would say: not covered


def test_a_contradiction_beside_the_question_hides_no_answer_and_offers_none(
    browser: webdriver.Chrome, origin: str, ties: Path
) -> None:
    complaints(browser)
    visit(
        browser,
        f"{origin}/{ties.name}/#problem=shuffling-epsilon&sigma=0.5&steps=10&delta=1e-5&adjacency=zero-out",
    )
    assert wait(browser, "#number").text == "ε ≥ 2"
    assert "At sigma=0.5" in str(wait(browser, "#chart svg").get_property("textContent"))
    visit(
        browser,
        f"{origin}/{ties.name}/#problem=shuffling-epsilon&sigma=1.5&steps=11&delta=1e-5&adjacency=zero-out",
    )
    assert "The store has no bound" in wait(browser, "#number").text
    assert browser.find_elements(By.ID, "nearest") == []
    assert "steps=11" in copied(browser, "Command line")
    assert complaints(browser) == []


def test_an_infinite_live_answer_is_told(browser: webdriver.Chrome, page: str) -> None:
    body = """
        const { told } = await load("table/source.js");
        const ends = { lower: "inf", upper: "inf", status: "ok" };
        const methods = [{ ...ends, name: "unamplified.exact", seconds: 0.1, detail: "" }];
        return told({ symbol: "ε", asks: "epsilon" }, { ...ends, confidence: 1, methods }).textContent;
    """
    visit(browser, f"{page}#problem=poisson-epsilon")
    assert "ε ≥ inf proved, computed now" in call(browser, body)


def test_an_empty_tab_says_how_to_fill_it(browser: webdriver.Chrome, origin: str, ties: Path) -> None:
    visit(browser, f"{origin}/{ties.name}/#tab=membership")
    assert "privsweep run membership-claims computes" in wait(browser, "#notice").text
    assert not browser.find_element(By.ID, "content").is_displayed()


def test_what_holds_with_a_confidence_is_told_with_it(
    browser: webdriver.Chrome, page: str, store: Path
) -> None:
    visit(
        browser,
        f"{page}#problem=audit-epsilon&canaries=100&guesses=50&correct=45&delta=1e-5&design=independent",
    )
    shown = wait(browser, "#bracket .number").text
    cut = (
        "return [...document.querySelectorAll('.symbol')].filter((e) => e.scrollWidth > e.clientWidth).length"
    )
    assert browser.execute_script(cut) == 0  # 1 - tau is the widest of all
    with open_store(store) as opened:
        query = "select lower from audit_epsilon where guesses = 50 and correct = 45"
        (lower,) = opened.sql(query)["lower"].to_pylist()
    assert shown == f"ε ≥ {rounded_down(lower)}"
    assert "with confidence 0.95, by auditing.steinke" in text(browser, "bracket")
    assert "with confidence 0.95 for" in copied(browser, "LaTeX")


def test_the_copied_python_and_command_give_the_answer_again(
    browser: webdriver.Chrome, page: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(browser, f"{page}#problem=label-advantage&mechanism=llp&prior=beta(2,30)&bag_size=5")
    shown = wait(browser, "#number").text
    program, command = copied(browser, "Python"), copied(browser, "Command line")
    (tmp_path / "store").symlink_to(store)
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "copied", "exec"), {})
    with redirect_stdout(io.StringIO()) as answered:
        words = shlex.split(command)
        assert words[0] == "privsweep"
        assert run([*words[1:], "--json"]) == 0
    answer = json.loads(answered.getvalue())
    assert f"lower={answer['lower']!r}, upper={answer['upper']!r}" in printed.getvalue()
    assert rounded_up(answer["upper"]) in shown


def test_latex_and_citation_name_the_table(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, f"{page}#problem=unamplified-epsilon&sigma=2&delta=1e-6")
    ends = re.findall(r"[\d.]+", wait(browser, "#number").text)
    version = json.loads(urllib.request.urlopen(f"{page}catalogue.json").read())["version"]
    latex, citation = copied(browser, "LaTeX"), copied(browser, "Citation")
    assert rf"$\varepsilon \in [{ends[0]}, {ends[1]}]$" in latex
    assert r"$\delta = 10^{-6}$" in latex
    assert version in latex
    assert version in citation
    assert "arXiv" in citation


def test_the_chart_says_what_it_shows_and_marks_the_question(browser: webdriver.Chrome, page: str) -> None:
    visit(browser, page + ALLOCATION)
    ends = re.findall(r"[\d.]+", wait(browser, "#number").text)
    chart = wait(browser, "#chart svg")
    assert chart.find_element(By.TAG_NAME, "title").get_property("textContent") == "epsilon over sigma"
    words = str(chart.find_element(By.TAG_NAME, "desc").get_property("textContent"))
    assert f"At sigma=2 it lies in [{ends[0]}, {ends[1]}]." in words
    assert len(chart.find_elements(By.CSS_SELECTOR, ".stored")) == 3
    assert len(chart.find_elements(By.CSS_SELECTOR, ".asked-point")) == 1
    browser.find_element(By.CSS_SELECTOR, "#axis option[value='steps']").click()
    title = browser.find_element(By.CSS_SELECTOR, "#chart title")
    assert title.get_property("textContent") == "epsilon over steps"


def test_the_downloads_are_the_lookup_table_and_what_the_page_answers_from(
    browser: webdriver.Chrome, page: str, store: Path, tmp_path: Path
) -> None:
    visit(browser, page + ALLOCATION)
    wait(browser, "#number")
    links = [str(a.get_property("href")) for a in browser.find_elements(By.CSS_SELECTOR, "#footer a")]
    files = [urllib.request.urlopen(link).read() for link in links]
    (tmp_path / "table.parquet").write_bytes(files[0])
    table = read_lookup_table(tmp_path / "table.parquet")
    known = json.loads(files[2])
    with open_store(store) as opened:
        ours = opened.sql("select lower from brackets.allocation_epsilon")["lower"].to_pylist()
        assert table.rows.equals(lookup_table(opened).rows)
    assert known["version"] == table.version
    assert table.version in text(browser, "edition")
    rows = pq.read_table(io.BytesIO(files[1])).to_pylist()
    assert sorted(row["lower"] for row in rows if row["confidence"] == 1) == sorted(ours)
    assert known["problems"]["allocation-epsilon"]["rows"] == len(ours)
