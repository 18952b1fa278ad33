"""The picture of a comparison: brackets on one axis, never narrower than they are proved."""

import io
import math

import pytest

from flows.answers.parse import problem_of
from flows.answers.training.compare import SchemeRow
from flows.answers.training.compare_output import axis_of, picture
from flows.answers.training.palette import NAMES
from privcore import Bracket

FIELDS = {"sigma": 1.1, "steps": 234, "delta": 1e-5, "epochs": 10}
ENDS = {
    "allocation": (0.878312, 0.884791),
    "poisson": (0.92066, 0.920665),
    "with-replacement": (0.0, 15.1945),
    "shuffling": (5.32158, math.inf),
    "none": (15.7827, 15.7828),
}


def rows() -> list[SchemeRow]:
    found = []
    problem = problem_of("allocation").from_fields(FIELDS)
    for sampling, (lower, upper) in ENDS.items():
        bracket = Bracket(lower=lower, upper=upper, lower_by="x", upper_by="x")
        found.append(SchemeRow(sampling=sampling, problem=problem, bracket=bracket))
    return [*found, SchemeRow(sampling="fixed-size", problem=None, status="missing", notes=("It is not.",))]


def lines(width: int, encoding: str = "utf-8") -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    drawn = picture(rows(), ("steps=234: nothing to round.",), width, stream)
    return ["".join(text for text, _ in line) for line in drawn]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_every_line_fits_and_every_row_is_there(width: int, encoding: str) -> None:
    drawn = lines(width, encoding)
    assert max(map(len, drawn)) <= width
    for sampling in (*ENDS, "fixed-size"):
        assert sum(line.startswith(f"  {NAMES[sampling]} ") for line in drawn) == 1
    "\n".join(drawn).encode(encoding)


def test_ends_are_rounded_outwards_and_a_narrow_bracket_is_its_upper_end() -> None:
    text = {line[2:].split("  ")[0]: line.rstrip() for line in lines(80)}
    assert text["random allocation"].endswith(" 0.8783 – 0.8848")
    assert text["Poisson"].endswith(" 0.9207")
    assert text["no amplification"].endswith(" 15.79")
    assert text["with replacement"].endswith(" 0 – 15.2")
    assert text["shuffled"].endswith(" 5.321 – inf")
    assert text["fixed size"].endswith("not stored")
    assert "fixed size: It is not." in lines(80)


def test_bars_stand_below_their_numbers() -> None:
    drawn = lines(80)
    assert "both ends proved" in drawn[0]
    ticks, mark = drawn[1], next(line for line in drawn if "no amplification" in line).index("▎")
    assert ticks.index("10") < mark < ticks.index("20")
    wide = next(line for line in drawn if "shuffled" in line)
    assert ticks.index(" 5") + 1 <= wide.index("├") < ticks.index("10")


def test_a_comparison_without_positive_ends_has_no_axis() -> None:
    assert axis_of([SchemeRow(sampling="none", problem=None)], 40) is None
