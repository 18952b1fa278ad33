"""Citations of theorems have the version of the paper, which is the same wherever the paper is cited."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from privcore import METHODS, Method, papers

CITED = re.compile(r"arXiv:(\d{4}\.\d{4,5})(v\d+)?")

UNSETTLED = {
    "1807.01647": "known from a specification alone, which numbers its theorems without the version",
    "1905.02383": "known from citations of its propositions, which do not name the version",
    "2306.08153": "known from a specification alone, and no number of it is cited",
    "2410.06266": "known from a specification alone, and no number of it is cited",
    "2411.04205": "known at second hand; the citation of Theorem 3.3 does not name the version",
    "2106.08567": "three versions; the citation of Theorem 11 does not name the version",
    "2202.08312": "known from citations alone, and no number of it is cited",
    "2110.03620": "known from its abstract and citations, and no number of it is cited",
    "2402.06701": "known from its abstract and citations, and no number of it is cited",
    "2202.12968": "known from a quotation alone, and no number of it is cited",
}
"""Papers whose version could not be established, and why; docs/papers.md says the same."""

PAPERS = {name: paper for name, paper in vars(papers).items() if name.isupper()}


@pytest.fixture(scope="module")
def table(repository: Path) -> str:
    return (repository / "docs/papers.md").read_text()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_reference_to_arxiv_names_the_version(method: type[Method]) -> None:
    for identifier, version in CITED.findall(method.reference):
        assert version or identifier in UNSETTLED, method.reference


def test_only_what_is_unsettled_lacks_a_version() -> None:
    lacking = {i for method in METHODS for i, version in CITED.findall(method.reference) if not version}
    assert lacking == set(UNSETTLED)


@pytest.mark.parametrize("name", PAPERS)
def test_a_reference_takes_its_paper_from_the_list(name: str) -> None:
    (cited,) = CITED.finditer(PAPERS[name])
    citing = [method.reference for method in METHODS if cited[1] in method.reference]
    assert citing
    assert all(PAPERS[name] in reference for reference in citing)


@pytest.mark.parametrize("name", PAPERS)
def test_the_documentation_tells_how_the_version_is_known(name: str, table: str) -> None:
    (cited,) = CITED.finditer(PAPERS[name])
    settled, unsettled = table.split("## Not established")
    told = unsettled if cited[1] in UNSETTLED else settled
    assert re.search(rf"^\|.*{re.escape(cited[0])}\b.*\|$", told, re.MULTILINE)


def test_a_paper_has_one_version_wherever_it_is_cited(repository: Path) -> None:
    """The changelog and the decision records are exempt, because they describe past states."""
    sources = [repository / "README.md", *(repository / "docs").glob("*.md")]
    for package in ("privcore", "storage", "tasks", "flows", "tests"):
        sources += [f for f in (repository / package).rglob("*") if f.suffix in (".py", ".toml", ".js")]
    ours = {m[1]: m[2] for paper in PAPERS.values() if (m := CITED.search(paper))}
    found = defaultdict(set)
    for source in sources:
        for cited in CITED.finditer(source.read_text(encoding="utf-8")):
            if cited[1] in ours and (cited[2] or None) != ours[cited[1]]:
                found[cited[0]].add(str(source.relative_to(repository)))
    assert not found
