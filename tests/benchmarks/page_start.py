"""The first answer of the page on a slow line, from a plain file server; part of the section page."""

import gzip
import statistics
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from selenium import webdriver

from flows.page.build import build
from storage.table.shipped import shipped_store
from tests.benchmarks.measure import head, row, verdict
from tests.flows.page.browser import chromium, file_server, read, requested, visit

RUNS = 5
LOADERS = ("poisson", "balls-in-bins")
RUN = "n=60000&batch=256&epochs=10&noise=1.1&delta=1e-5"
SLOW_4G = {"latency": 562.5, "downloadThroughput": 1.4e6 / 8, "uploadThroughput": 675e3 / 8}
"""The line that browsers call Slow 4G: milliseconds, and bytes per second."""
FAST = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
SECONDS, CACHED, REQUESTS, BYTES = 3.0, 0.3, 12, 150_000
FIRST = "return document.documentElement.dataset.firstAnswer"


def _answered(browser: webdriver.Chrome, address: str, line: Mapping[str, float], *, fresh: bool) -> float:
    """Return the seconds from the start of the navigation to the first answer."""
    browser.execute_cdp_cmd("Network.enable", {})
    if fresh:
        browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **line})
    visit(browser, address)
    return float(read(browser, lambda page: page.execute_script(FIRST))) / 1000


def _compressed(addresses: list[str]) -> int:
    """Return the bytes of some files, each compressed by gzip."""
    return sum(len(gzip.compress(urllib.request.urlopen(each).read())) for each in addresses)


def table() -> Iterator[str]:
    """Yield the seconds, requests and bytes of the first answer of the form, for two loaders."""
    yield f"The first answer of the form from a plain file server, median of {RUNS} visits:"
    yield ""
    yield head(
        ["loader", "Slow 4G, nothing kept", "no throttle, files kept", "requests", "bytes", "compressed"]
    )
    slow, kept, most, largest = [], [], 0, 0
    shipped = shipped_store()
    assert shipped is not None, "the checkout has no table"
    with tempfile.TemporaryDirectory() as scratch, shipped:
        build(shipped, Path(scratch) / "page")
        with file_server(Path(scratch) / "page") as address, chromium(Path(scratch) / "profile") as browser:
            for loader in LOADERS:
                place = f"{address}/#loader={loader}&{RUN}"
                seconds = [_answered(browser, place, SLOW_4G, fresh=True) for _ in range(RUNS)]
                again = [_answered(browser, place, FAST, fresh=False) for _ in range(RUNS)]
                requested(browser)
                _answered(browser, place, FAST, fresh=True)
                files = [each for each in dict.fromkeys(requested(browser)) if each.startswith(address)]
                size, small = (
                    sum(len(urllib.request.urlopen(each).read()) for each in files),
                    _compressed(files),
                )
                slow.append(statistics.median(seconds))
                kept.append(statistics.median(again))
                most, largest = max(most, len(files)), max(largest, small)
                yield row(
                    [
                        loader,
                        f"{slow[-1]:.2f} s",
                        f"{kept[-1]:.2f} s",
                        str(len(files)),
                        f"{size:,}",
                        f"{small:,}",
                    ]
                )
    yield ""
    yield verdict(f"a first answer in {SECONDS:g} s on Slow 4G", f"{max(slow):.2f} s", max(slow) <= SECONDS)
    yield verdict(f"in {CACHED:g} s with kept files", f"{max(kept):.2f} s", max(kept) <= CACHED)
    yield verdict(f"at most {REQUESTS} requests", str(most), most <= REQUESTS)
    yield verdict(f"at most {BYTES:,} bytes, compressed", f"{largest:,}", largest <= BYTES)
