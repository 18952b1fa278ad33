"""The findings of axe, the checker of accessibility, on the page of a browser."""

from importlib.resources import files

from tests.flows.page.browser import Scripted, call

AXE = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
FINDINGS = """
    const { violations, passes } = await axe.run(document, { resultTypes: ["violations"] });
    const places = ({ id, nodes }) => nodes.map((at) => `${id}: ${at.html} ${at.failureSummary}`);
    return [passes.length, violations.flatMap(places)];
"""


def findings(browser: Scripted) -> tuple[int, list[str]]:
    """Return the number of rules that hold on the page, and each violation with its place."""
    browser.execute_async_script(f"{AXE}; arguments[arguments.length - 1](null);")
    held, violated = call(browser, FINDINGS)
    return held, violated
