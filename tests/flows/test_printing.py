"""Printed bounds are never tighter than the computed bounds."""

import io
import json
import math
import random
import re
import struct
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.printing import as_csv, as_json, exactly, listed, marked, rounded_down, rounded_up, show

finite = st.floats(allow_nan=False, allow_infinity=False)


def any_floats(count: int) -> list[float]:
    """Random bit patterns: all magnitudes from subnormal to huge, both signs, and epsilons as they occur."""
    rng = random.Random(20)
    drawn = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(count // 2)]
    return [x for x in drawn if math.isfinite(x)] + [10.0 ** rng.uniform(-12, 4) for _ in range(count // 2)]


def test_a_hundred_thousand_printed_ends_enclose_what_is_stored() -> None:
    for x in any_floats(100_000):
        up, down = rounded_up(x), rounded_down(x)
        assert Decimal(down) <= Decimal(x) <= Decimal(up)
        assert float(down) <= x <= float(up)


@given(finite, st.integers(1, 17))
def test_printed_ends_enclose_the_value_at_any_number_of_digits(x: float, digits: int) -> None:
    up, down = rounded_up(x, digits), rounded_down(x, digits)
    assert Decimal(down) <= Decimal(x) <= Decimal(up)
    assert rounded_up(-x, digits) in {f"-{down}", down.removeprefix("-")}


@given(st.floats(1e-300, 1e300), st.integers(1, 17))
def test_printed_ends_are_as_near_as_their_digits_allow(x: float, digits: int) -> None:
    width = Decimal(rounded_up(x, digits)) - Decimal(rounded_down(x, digits))
    assert width <= Decimal(x) * Decimal(10) ** (1 - digits)


@given(finite)
def test_parameters_are_printed_without_loss(x: float) -> None:
    assert float(exactly(x)) == x


@pytest.mark.parametrize(
    ("x", "down", "up"),
    [
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (math.inf, "inf", "inf"),
        (1.0, "1", "1"),
        (0.5, "0.5", "0.5"),
        (4.3771780956, "4.37717", "4.37718"),
        (0.99999999, "0.999999", "1"),
        (12345678.0, "1.23456e+7", "1.23457e+7"),
        (1234567.0, "1234560", "1234570"),
        (5e-324, "4.94065e-324", "4.94066e-324"),
    ],
)
def test_ends_look_like_this(x: float, down: str, up: str) -> None:
    assert (rounded_down(x), rounded_up(x)) == (down, up)


def test_nan_is_never_printed() -> None:
    with pytest.raises(ValueError, match="NaN"):
        rounded_up(math.nan)
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json({"upper": math.nan})


@given(st.floats(allow_nan=False))
def test_json_keeps_every_digit_and_has_no_bare_token(x: float) -> None:
    def refuse(token: str) -> float:
        raise AssertionError(token)

    read = json.loads(as_json([x]), parse_constant=refuse)[0]
    assert read == (x if math.isfinite(x) else str(x))


def test_json_takes_what_sql_returns() -> None:
    assert as_json([Decimal(7), Decimal("0.5"), None, True, b"x"]) == "[7, 0.5, null, true, \"b'x'\"]"


def test_a_decimal_that_no_float_is_keeps_its_digits() -> None:
    long = Decimal("-1.1234567890123456789")
    assert as_json([long]) == '["-1.1234567890123456789"]'
    assert as_csv(["x"], [[long]]) == "x\n-1.1234567890123456789\n"


def test_csv_disarms_formulas_and_keeps_digits() -> None:
    text = as_csv(["name", "x"], [["=cmd()", -0.1], ["@a", None], ["a,b", 1 / 3]])
    assert text == "name,x\n'=cmd(),-0.1\n'@a,\n\"a,b\",0.3333333333333333\n"


def test_fields_are_listed_as_they_are_typed() -> None:
    assert listed({"sigma": 1.0, "steps": 10_000, "delta": 1e-8}) == "sigma=1 steps=10000 delta=1e-8"


def test_a_piped_table_is_plain_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    show(["method", "upper"], [["a", "0.5"], ["longer", "inf"]], title="Title")
    assert capsys.readouterr().out == "Title\nmethod  upper\na         0.5\nlonger    inf\n"


def test_a_table_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    show(["method", "upper"], [])
    assert capsys.readouterr().out == "method  upper\n"


def test_a_table_on_a_narrow_terminal_keeps_every_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "dumb")  # no codes for bold, whose digits would be counted below
    show(["method", "upper"], [["[bold] of many letters", "0.0606830123"]])
    digits = "".join(letter for letter in screen.getvalue() if letter in "0123456789.")
    assert digits == "0.0606830123"
    assert "[bold]" in screen.getvalue(), "text between brackets is not markup"


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in exactly("\x1b[31mred\nline")


def test_names_of_columns_do_not_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    show(["\x1b[2Jsigma"], [["1"]])
    assert capsys.readouterr().out.splitlines()[0].strip() == "[2Jsigma"


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_foreign_text_cannot_control_a_terminal_with_colours(
    term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Window(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    marked("na\x1b[2Jme ", "te\x1b[31mxt\r", style="bold red", file=(window := Window()))
    text = window.getvalue()
    assert "na\\x1b[2Jme" in text
    assert "te\\x1b[31mxt\\r" in text
    styles = re.findall(r"\x1b\[([0-9;]*)m", text)
    assert text.count("\x1b") == len(styles) == (0 if term == "dumb" else 2)
