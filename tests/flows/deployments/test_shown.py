"""The artifact of a report: text and tables, with a link if a browser can follow one."""

from pathlib import Path

import pytest

from flows.deployments import named
from flows.deployments.shown import _whole_report, check_address
from flows.reports.document import Block, Document, Heading, Paragraph, TextTable
from flows.reports.files import tables
from privcore.errors import DomainError


def test_long_tables_are_cut_and_say_by_how_much() -> None:
    table = TextTable(title="Points", names=["number"], rows=[[str(number)] for number in range(30)])
    blocks: list[Block] = [Heading(text="A report", level=1), Paragraph(text="One sentence."), table]
    text = tables(Document(name="small", blocks=blocks), 25)
    assert text.startswith("# A report\n\nOne sentence.\n\nPoints:\n\n| number |")
    assert "| 24 |\n" in text
    assert "| 25 |" not in text
    assert text.endswith("... and 5 more rows.\n")


def test_a_report_is_a_link_only_if_its_address_is_known(tmp_path: Path) -> None:
    file = tmp_path / "a b.html"
    link = _whole_report(file, "https://reports.example/all/")
    assert link == "[The whole report, with charts](https://reports.example/all/a%20b.html)"
    assert f"`{file}`" in _whole_report(file, None)


@pytest.mark.parametrize(
    "address", ["file:///srv/reports", "reports.example", "javascript:alert(1)", "http://"]
)
def test_an_address_that_a_page_does_not_follow_is_refused(address: str) -> None:
    with pytest.raises(DomainError, match="Expected reports_url with http"):
        check_address(address)


def test_each_sweep_has_a_flow_of_its_name() -> None:
    assert getattr(named, "labels-rates").name == "privsweep-labels-rates"
    assert named.lookup.fn is named.quickstart.fn
