"""Tables fitted to a terminal: nothing is wider than it, and nothing is cut short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.tables import GAP, LONGEST_WORD, broken, fitted

words = st.text("ab.-1", min_size=1, max_size=LONGEST_WORD)
cells = st.lists(words, max_size=8).map(" ".join)
COLUMNS = ("name", "upper end", "reference")
tables = st.lists(st.tuples(cells, cells, cells), max_size=5)
ROWS = [("a.one", "0.5", "Somebody (2020), Theorem 1"), ("a.two", "12", "Nobody"), ("b.one", "1", "")]
RIGHT = (False, True, False)


def lines(width: int, **apart: str) -> list[str]:
    return list(fitted(COLUMNS, ROWS, RIGHT, width, **apart))


@given(tables, st.integers(3 * LONGEST_WORD + 2 * len(GAP), 300))
def test_a_table_is_never_wider_than_a_terminal_that_takes_its_words(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    told = list(fitted(COLUMNS, rows, RIGHT, width))
    assert max(map(len, told)) <= width
    letters = sorted("".join(told[2:]).replace(" ", ""))
    assert letters == sorted("".join(cell for row in rows for cell in row).replace(" ", ""))


@given(tables, st.integers(1, 120), st.sampled_from(["", "name", "reference"]))
def test_every_word_is_whole_at_any_width(rows: list[tuple[str, str, str]], width: int, apart: str) -> None:
    for place in ("heading", "below"):
        told = " ".join(fitted(COLUMNS, rows, RIGHT, width, **{place: apart})).split()
        assert {word for row in rows for cell in row for word in cell.split()} <= set(told)


def test_a_wide_terminal_shows_one_line_for_each_row() -> None:
    assert lines(80, below="reference", heading="name") == [
        "name   upper end  reference",
        "-----  ---------  --------------------------",
        "a.one        0.5  Somebody (2020), Theorem 1",
        "a.two         12  Nobody",
        "b.one          1",
    ]


def test_the_widest_column_is_broken_first() -> None:
    assert lines(32) == [
        "name   upper end  reference",
        "-----  ---------  --------------",
        "a.one        0.5  Somebody",
        "                  (2020),",
        "                  Theorem 1",
        "a.two         12  Nobody",
        "b.one          1",
    ]


def test_a_text_below_its_row_leaves_the_other_columns_whole() -> None:
    assert lines(26, below="reference") == [
        "name   upper end",
        "-----  ---------",
        "a.one        0.5",
        "    Somebody (2020),",
        "    Theorem 1",
        "a.two         12",
        "    Nobody",
        "b.one          1",
    ]


def test_a_heading_stands_above_the_rows_that_share_it() -> None:
    rows = [("first", "a.", "one"), ("second", "a.", "two"), ("third", "b.", "three")]
    assert list(fitted(("name", "of", "is"), rows, (False,) * 3, 14, heading="of")) == [
        "name    is",
        "------  -----",
        "of a.",
        "first   one",
        "second  two",
        "of b.",
        "third   three",
    ]


def test_a_table_that_cannot_fit_becomes_records() -> None:
    assert lines(21) == [
        "name       a.one",
        "upper end  0.5",
        "reference  Somebody",
        "           (2020),",
        "           Theorem 1",
        "",
        "name       a.two",
        "upper end  12",
        "reference  Nobody",
        "",
        "name       b.one",
        "upper end  1",
    ]


def test_a_table_without_rows_is_its_names() -> None:
    assert next(iter(fitted(COLUMNS, [], RIGHT, 80))).split() == ["name", "upper", "end", "reference"]
    assert " ".join(fitted(COLUMNS, [], RIGHT, 5)).split() == ["name", "upper", "end", "reference"]


@pytest.mark.parametrize("width", [1, 3, 10])
def test_a_word_longer_than_a_line_stays_whole_in_prose(width: int) -> None:
    assert broken("0.123456789012 of it", width)[0] == "0.123456789012"
