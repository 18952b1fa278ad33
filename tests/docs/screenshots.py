"""Pictures of the lookup page for README.md, light and dark: `python -m tests.docs.screenshots` writes them.

The page is built from the shipped table, and Debian's Chromium takes the pictures.
"""

import base64
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

from flows.page.build import build
from storage.table.shipped import shipped_store
from tests.flows.page.browser import chromium, file_server, read, text, visit

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SCHEMES = ("light", "dark")
RUN = "loader=shuffling-drop-last&n=60000&batch=256&epochs=10&noise=1.1&delta=1e-5"
SCREEN = {"width": 1200, "height": 1000, "deviceScaleFactor": 1, "mobile": True}  # mobile: without scrollbars
QUALITY = 70
"""Quality of WebP, from 0 to 100: a picture has less than 100 kB."""
END = """
    const sections = [...document.querySelectorAll("#run .two > section")];
    return Math.max(...sections.map((section) => section.getBoundingClientRect().bottom));
"""


@contextmanager
def page() -> Iterator[tuple[str, webdriver.Chrome]]:
    """The address of the page over the shipped table, and a browser."""
    shipped = shipped_store()
    assert shipped is not None, "the checkout has no table"
    with tempfile.TemporaryDirectory() as scratch, shipped:
        build(shipped, Path(scratch) / "page")
        with file_server(Path(scratch) / "page") as address, chromium(Path(scratch) / "profile") as browser:
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SCREEN)
            yield address, browser


def picture(address: str, browser: webdriver.Chrome, scheme: str) -> bytes:
    """Return a picture of the form of a training run and its answer, as WebP.

    Args:
        address: Address of the page.
        browser: The browser.
        scheme: `light` or `dark`.
    """
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    visit(browser, f"{address}/#{RUN}")
    read(browser, lambda shown: "%" in text(shown, "attack-says"))
    read(browser, lambda shown: "computing" not in text(shown, "brackets"))
    browser.execute_script("document.activeElement.blur()")
    clip = {"x": 0, "y": 0, "width": SCREEN["width"], "height": browser.execute_script(END) + 4, "scale": 1}
    options = {"format": "webp", "quality": QUALITY, "clip": clip}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    return base64.b64decode(taken["data"])


def main() -> None:
    """Write a picture for each colour scheme."""
    with page() as (address, browser):
        for scheme in SCHEMES:
            path = PICTURES / f"page-{scheme}.webp"
            path.write_bytes(picture(address, browser, scheme))
            print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
