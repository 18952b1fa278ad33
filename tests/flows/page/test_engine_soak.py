"""The engine of the page against every row of the shipped table and 2,000 drawn questions, in parts.

Each part prints the number of its brackets, which pytest shows with -s.
"""

import math
from collections.abc import Sequence

import pytest
from selenium import webdriver

from tests.flows.page.drawn import Asked, asked
from tests.flows.page.engine import computed, covered_rows, stored, width
from tests.flows.page.test_engine import BEYOND

pytestmark = pytest.mark.soak

ROW_PARTS, QUESTION_PARTS, CHUNK = 40, 20, 20
TOLERANCE = 0.01


def parts(count: int) -> pytest.MarkDecorator:
    """Return the parts of a test, half of them for each of two processes, which have a browser each."""
    groups = [pytest.mark.xdist_group(f"engine-{part % 2}") for part in range(count)]
    cases = [pytest.param(part, marks=group) for part, group in enumerate(groups)]
    return pytest.mark.parametrize("part", cases)


def apart(browser: webdriver.Chrome, rows: Sequence[Asked]) -> tuple[list[Asked], int]:
    """Return the questions whose brackets do not intersect, and the number that are as narrow as ours."""
    exceptions, ratios, narrow = [], [], 0
    for start in range(0, len(rows), CHUNK):
        chosen = rows[start : start + CHUNK]
        found = computed(browser, [one.content for one in chosen])
        for one, (lower, upper, detail, _) in zip(chosen, found, strict=True):
            if not (0.0 <= lower <= upper and lower <= one.upper and one.lower <= upper):
                exceptions.append(one)
            ours, theirs = width(one.lower, one.upper), width(lower, upper)
            narrow += theirs <= max(1.5 * ours, 1.0001 * TOLERANCE) or BEYOND in detail
            if 0.0 < ours < math.inf:
                ratios.append(theirs / ours)
    print(f"{len(rows)} brackets, {len(exceptions)} apart, {narrow} narrow, largest ratio {max(ratios):.3f}")
    return exceptions, narrow


@parts(ROW_PARTS)
def test_every_row_of_the_shipped_table_intersects_a_computed_bracket(
    at_page: webdriver.Chrome, part: int
) -> None:
    """Part k has every fortieth row, so that all parts take about as long."""
    rows = covered_rows()
    chosen = stored(rows.take(list(range(part, len(rows), ROW_PARTS))))
    assert len(chosen) > 1000
    exceptions, _ = apart(at_page, chosen)
    assert exceptions == []


@parts(QUESTION_PARTS)
def test_brackets_of_two_thousand_questions_intersect(at_page: webdriver.Chrome, part: int) -> None:
    """All intersect; a few deltas at a large epsilon are wider than 1 % and than 1.5 times ours."""
    each = 2000 // QUESTION_PARTS // 10
    seeds = range(100 + part * each, 100 + (part + 1) * each)
    questions = [one for seed in seeds for one in asked(seed, 10)]
    exceptions, narrow = apart(at_page, questions)
    assert exceptions == []
    assert narrow >= 0.97 * len(questions)
