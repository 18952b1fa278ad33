"""The data files of the page: every number arrives exactly, from any file server; damage is a sentence."""

import functools
import http.server
import math
import threading
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from flows.page.build import build
from flows.page.stored import ProblemTable, tables
from privcore import Answer
from storage import open_store
from tests.flows.page.browser import Quiet, call, text, visit, wait
from tests.storage.made_up import claimed, epsilon, put_each, row

pytestmark = [pytest.mark.sampled(2), pytest.mark.xdist_group("page")]

ENDS = [(0.0, 5e-324), (0.1, math.nextafter(0.1, 1)), (2.0**53, 1.7976931348623157e308), (1 / 3, math.inf)]
DELTA: dict[str, Any] = {"sigma": 1.0, "steps": 10, "epsilon": 1.0}
LIKELY = Answer.enclosure(0.1, 0.2, confidence=0.99)

COLUMNS = """
    const { open } = await load("table/source.js");
    const { brackets, stated, methods } = await (await open()).table(given[0]);
    const text = (x) => (typeof x === "number" ? String(x) : x);
    const named = (k) => methods[k] ?? null;
    const list = (name, values) => [...values].map(name.endsWith("_method") ? named : text);
    const plain = (columns) =>
        Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, list(name, values)]));
    return [plain(brackets), plain(stated)];
"""
"""The columns in the browser; the texts of its numbers read back the same."""


@pytest.fixture(scope="module")
def stored(folder: Path) -> dict[str, ProblemTable]:
    """The answers of a store with the smallest, largest and infinite ends, and a likely answer."""
    lines = [row(epsilon(sigma=1 + k / 7), Answer.enclosure(*ends)) for k, ends in enumerate(ENDS)]
    lines += [row(epsilon(sigma=5.0), Answer.at_most(0.25))]
    put_each(
        folder / "extremes", [*lines, claimed("allocation-delta", "allocation.montecarlo", LIKELY, **DELTA)]
    )
    with open_store(folder / "extremes") as store:
        build(store, folder / "www" / "extremes")
        return {each.kind.name: each for each in tables(store)}


@pytest.mark.parametrize("name", ["unamplified-epsilon", "allocation-delta"])
def test_a_browser_reads_every_stored_value_exactly(
    browser: webdriver.Chrome, origin: str, stored: dict[str, ProblemTable], name: str
) -> None:
    visit(browser, f"{origin}/extremes/")
    brackets, likely = call(browser, COLUMNS, name)
    table = stored[name]
    both = {**table.stated, **{f"lower_{each}": table.stated[each] for each in ("method", "point")}}
    assert table.rows == len(brackets["lower"]) + len(likely["lower"]) > 0
    for columns, python in [(brackets, table.brackets), (likely, both)]:
        for column in columns.keys() & python.keys():
            words = [
                None if x is None else type(x)(y)
                for x, y in zip(python[column], columns[column], strict=True)
            ]
            assert words == list(python[column]), column


class Unpacked(Quiet):
    """A file server that declares the compression of files, so that a browser unpacks them by itself."""

    def end_headers(self) -> None:
        """Add the header."""
        if ".gz" in self.path:
            self.send_header("Content-Encoding", "gzip")
        super().end_headers()


def test_a_server_may_declare_the_compression_of_the_data(
    browser: webdriver.Chrome, stored: dict[str, ProblemTable], folder: Path
) -> None:
    handler = functools.partial(Unpacked, directory=str(folder / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            asked = "problem=unamplified-epsilon&sigma=5&delta=1e-5"
            visit(browser, f"http://127.0.0.1:{server.server_port}/extremes/#{asked}")
            assert "4.94066e-324" in wait(browser, "#number").text
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"\n<html>"], ids=["cut", "replaced"]
)
def test_a_damaged_data_file_is_a_sentence(
    browser: webdriver.Chrome, origin: str, folder: Path, damage: Any
) -> None:
    put_each(folder / "damaged", [row(epsilon(sigma=1.0))])
    with open_store(folder / "damaged") as store:
        build(store, folder / "www" / "damaged")
    file = folder / "www" / "damaged" / "data" / "unamplified-epsilon.json.gz"
    file.write_bytes(damage(file.read_bytes()))
    visit(browser, f"{origin}/damaged/#problem=unamplified-epsilon&sigma=1&delta=1e-5")
    wait(browser, "#notice, .error")
    assert "Cannot load data/unamplified-epsilon.json.gz" in text(browser, "notice")
    assert "the file is damaged" in text(browser, "notice")
