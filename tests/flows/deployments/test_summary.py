"""Summaries of finished batches are short and complete."""

import re

from flows.deployments.summary import LINES, WARNINGS, Computed
from privcore.answer import Status
from tasks.tally import Tally
from tasks.work import Done


def done(number: int, *, failed: int = 0, points: int = 10) -> Done:
    """A batch of one of two methods, by one of two workers."""
    statuses = {Status.OK: points - failed} | ({Status.TIMEOUT: failed} if failed else {})
    return Done(
        part=f"{number}.parquet",
        statuses=statuses,
        seconds=0.5,
        method=f"method.{number % 2}",
        problem="problem",
        worker=f"host {number % 2}",
        reasons=tuple(f"timeout: point {n} took too long." for n in range(min(failed, 3))),
    )


def told(batches: int, *, expected: int | None = None, failed: int = 0) -> tuple[list[str], list[str]]:
    """Return the lines and warnings about this number of batches."""
    tally = Tally()
    computed = Computed(expected or batches, tally)
    lines: list[str | None] = []
    warnings: list[str | None] = []
    for number in range(batches):
        batch = done(number, failed=failed)
        tally.add(batch)
        lines.append(computed.line(batch))
        warnings.append(computed.warning(batch))
    lines.append(computed.rest())
    warnings.append(computed.warning_of_rest())
    return [line for line in lines if line], [warning for warning in warnings if warning]


def test_a_few_batches_get_a_line_each() -> None:
    lines, warnings = told(3)
    assert lines == [
        "method.0: 10 points, 0.5 s, on host 0 (1 of 3 batches)",
        "method.1: 10 points, 0.5 s, on host 1 (2 of 3 batches)",
        "method.0: 10 points, 0.5 s, on host 0 (3 of 3 batches)",
    ]
    assert warnings == []


def test_many_batches_share_lines_that_add_up() -> None:
    lines, _ = told(1001)
    assert len(lines) <= LINES
    assert sum(int(points) for line in lines for points in re.findall(r"(\d+) points", line)) == 10_010
    assert "in 17 batches" in lines[0]
    assert "(1001 of 1001 batches)" in lines[-1]


def test_batches_that_were_cut_in_halves_do_not_lengthen_the_log() -> None:
    lines, _ = told(500, expected=2)
    assert len(lines) == LINES
    assert sum(int(points) for line in lines for points in re.findall(r"(\d+) points", line)) == 5000


def test_a_failure_is_told_with_its_reasons() -> None:
    _, (warning, *_) = told(1, failed=2)
    assert warning == (
        "2 of 10 points of method.0 failed: timeout: point 0 took too long.; timeout: point 1 took too long."
    )


def test_many_failures_are_counted_where_they_are_not_told() -> None:
    _, warnings = told(WARNINGS + 5, failed=4)
    assert len(warnings) == WARNINGS + 1
    assert warnings[0].endswith("...")
    assert warnings[-1] == "20 more points failed."


def test_the_table_has_a_row_for_each_problem_and_method() -> None:
    tally = Tally()
    for number in range(4):
        tally.add(done(number, failed=number))
    first, second = Computed(4, tally).table()
    assert first == {
        "problem": "problem",
        "method": "method.0",
        "points": 20,
        "statuses": "18 ok, 2 timeout",
        "seconds": 1.0,
    }
    assert second["statuses"] == "16 ok, 4 timeout"
