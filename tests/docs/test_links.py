"""Links inside the repository lead to files and headings that exist."""

from pathlib import Path

import pytest

from tests.docs.links import anchors, dead, files


def test_no_link_and_no_name_of_a_page_is_dead(repository: Path) -> None:
    found = files(repository)
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} <= {path.name for path in found}
    assert sum(path.suffix == ".md" for path in found) > 40
    assert list(dead(repository, found)) == []


PAGE = """# A `page`, of two words

## Same
## Same

(labelled)=
<a id="old"></a>

See [the page](other.md), [a heading](#same-1), [here](#labelled), [there](#old) and [the web](https://a.org/b.md#c).
"""


MISSING = "missing.md"  # apart from its folder, since the check reads this file, too


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "other.md").write_text("# Other\n")
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_headings_have_the_anchors_of_github_and_labels_their_own(page: Path) -> None:
    assert anchors(page) == {"a-page-of-two-words", "same", "same-1", "labelled", "old"}
    assert list(dead(page.parent, [page])) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[](missing.md)", "missing.md does not exist"),
        ("![a picture](missing.svg)", "missing.svg does not exist"),
        ('<img alt="" src="missing.png">', "missing.png does not exist"),
        ('<source media="dark" srcset="missing.webp">', "missing.webp does not exist"),
        ("[a heading](other.md#none)", "other.md has no heading of this name"),
        ("[a heading](#none)", "page.md has no heading of this name"),
        ("[a reference][name]\n\n[name]: missing.md", "missing.md does not exist"),
        ("| a |\n|---|\n| [](missing.md) |", "missing.md does not exist"),
        ("[](../page.md)", "leaves the repository"),
        (f"`docs/{MISSING}` has more", f"docs/{MISSING} does not exist"),
    ],
)
def test_a_dead_link_is_found_wherever_it_is_written(text: str, reason: str, page: Path) -> None:
    page.write_text(f"{PAGE}\n{text}\n")
    (sentence,) = dead(page.parent, [page])
    assert reason in sentence


def test_a_link_in_code_is_text(page: Path) -> None:
    page.write_text("`[](missing.md)`\n\n```\n[](missing.md)\n```\n")
    assert list(dead(page.parent, [page])) == []
