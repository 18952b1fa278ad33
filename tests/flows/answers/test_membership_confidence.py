"""`privsweep membership`: the confidence of its bracket, and the condition of each bracket."""

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from flows.answers.ask import ask
from flows.answers.membership import Known, sandwich
from privcore import DomainError, find_problem
from tests.flows.small_store import Command

ATTACK = (560, 1000, 480, 1000)
USELESS = (460, 1000, 480, 1000)
SAMPLE = "600,300,100"
ALONE = ", for the values of the file alone"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with 40 values, each in one row."""
    path = tmp_path / "f.csv"
    path.write_text("x\n" + "".join(f"{k}\n" for k in range(1, 41)))
    return path


def headlines(privsweep: Command, *words: object) -> list[str]:
    """Return the printed lines of the advantage, of the security and of the accuracy."""
    assert privsweep("membership", *words) == 0
    return privsweep.out.splitlines()[-3:]


def content(privsweep: Command, *words: object) -> Any:
    return privsweep.told("membership", *words)


@pytest.mark.parametrize("word", ["column", "counts"])
def test_a_certain_bracket_from_the_values_of_a_file_says_so(
    privsweep: Command, file: Path, word: str
) -> None:
    words = ("--law", f"{word}({file},x)", "--sample", "1500,1500", "--records", 100)
    for line in headlines(privsweep, *words):
        ahead, proved = line.split("; certain ")
        assert ahead.endswith("with confidence 0.95"), "the sample alone gives the headline"
        assert proved.endswith(f"]{ALONE}")
    shown = content(privsweep, *words)
    assert shown["conditional"] is False
    assert shown["certain"]["conditional"] is True


def test_both_brackets_from_the_values_of_a_file_say_so(privsweep: Command, file: Path) -> None:
    words = ("--law", f"column({file},x)", "--records", 100, "--attack", *ATTACK)
    for line in headlines(privsweep, *words):
        ahead, proved = line.split("; certain ")
        assert ahead.endswith(f"with confidence 0.95{ALONE}")
        assert proved.endswith(f"]{ALONE}")
    shown = content(privsweep, *words)
    assert shown["conditional"] is shown["certain"]["conditional"] is True


def test_a_certain_bracket_without_a_file_has_no_condition(privsweep: Command, file: Path) -> None:
    words = (
        "--law",
        f"column({file},x)",
        "--epsilon",
        "0.001",
        "--delta",
        0,
        "--adjacency",
        "add-remove",
        "--records",
        100,
        "--attack",
        500,
        1000,
        500,
        1000,
    )
    assert all(ALONE not in line for line in headlines(privsweep, *words)), "epsilon gives the upper end"
    shown = content(privsweep, "--law", "uniform(40)", "--records", 100, "--attack", *ATTACK)
    assert shown["certain"]["conditional"] is False


@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.95", "0.99"])
def test_two_bounds_from_data_hold_together_with_the_asked_confidence(
    privsweep: Command, confidence: str
) -> None:
    words = ("--sample", SAMPLE, "--records", 50, "--attack", *ATTACK, "--confidence", confidence)
    for line in headlines(privsweep, *words):
        assert line.split("; certain ")[0].endswith(f"] with confidence {confidence}")
    shown = content(privsweep, *words)
    assert shown["confidence"] == float(confidence)
    each = 1.0 - (1.0 - float(confidence)) / 2.0
    assert [row["confidence"] for row in shown["bounds"]] == pytest.approx([each, each], rel=1e-15)


def test_each_of_two_bounds_from_data_is_the_bound_at_its_own_confidence() -> None:
    found = sandwich(Known(sample=SAMPLE, records=50, attack=ATTACK))
    attack, sample = found["bounds"]
    for row in (attack, sample):
        asked = ask(find_problem(row["problem"]).from_fields({**row["fields"], "confidence_level": 0.975}))
        assert (row["confidence"], row["kind"]) == (asked.confidence, "confidence 0.975")
        assert row["upper"] == asked.upper
    assert found["advantage"] == {"lower": attack["lower"], "upper": sample["upper"]}


def test_the_errors_of_two_bounds_exceed_the_allowed_error_by_no_rounding() -> None:
    draw = random.Random(5)
    for level in [
        0.5,
        0.9,
        0.95,
        0.99,
        1.0 - 2.0**-52,
        *(1.0 - 10 ** draw.uniform(-12, -0.31) for _ in range(300)),
    ]:
        known = Known(sample=SAMPLE, records=50, attack=ATTACK, confidence=level)
        levels = [each.question.as_fields()["confidence_level"] for each in known.evidence()]
        allowed, spent = 1 - Fraction(level), sum(1 - Fraction(each) for each in levels)
        assert len(levels) == 2
        assert spent <= allowed, level
        assert spent >= allowed - Fraction(2) ** -52, level


def test_a_confidence_that_cannot_be_divided_is_refused() -> None:
    level = 1.0 - 2.0**-53
    assert sandwich(Known(attack=(900, 1000, 10, 1000), confidence=level))["confidence"] == level
    with pytest.raises(DomainError, match="Expected a smaller --confidence with 2 facts from data, got 0"):
        sandwich(Known(sample=SAMPLE, records=50, attack=ATTACK, confidence=level))


@pytest.mark.parametrize("facts", [{"attack": ATTACK}, {"sample": SAMPLE, "records": 50}])
def test_one_bound_from_data_has_the_asked_confidence(facts: dict[str, Any]) -> None:
    found = sandwich(Known(**facts, confidence=0.9))
    assert found["confidence"] == found["bounds"][0]["confidence"] == 0.9


def test_data_that_add_nothing_leave_the_proved_bracket(privsweep: Command) -> None:
    words = ("--attack", *USELESS, "--bits", 1, "--records", 50)
    assert headlines(privsweep, *words)[0] == "advantage in [0, 0.0832555]"
    shown = content(privsweep, *words)
    assert shown["confidence"] == 1.0
    assert "certain" not in shown
    assert [row["confidence"] for row in shown["bounds"]] == [0.95, 1.0]


def test_two_facts_from_data_that_add_nothing_leave_the_proved_bracket(
    privsweep: Command, file: Path
) -> None:
    facts = ("--attack", *USELESS, "--sample", SAMPLE, "--records", 50)
    assert headlines(privsweep, *facts, "--bits", 1)[0] == "advantage in [0, 0.0832555]"
    few = headlines(privsweep, *facts[:-1], 900, "--law", f"column({file},x)")[0]
    assert few.endswith(f"]{ALONE}")
    assert "confidence" not in few


def test_a_useless_attack_costs_its_error_since_it_was_given_before_its_counts_were_seen() -> None:
    alone = sandwich(Known(sample=SAMPLE, records=50, confidence=0.975))
    found = sandwich(Known(sample=SAMPLE, records=50, attack=USELESS))
    assert found["confidence"] == 0.95
    assert found["advantage"]["upper"] == alone["advantage"]["upper"]


def test_an_attack_beyond_a_sample_is_refuted_with_the_asked_confidence(
    privsweep: Command,
) -> None:
    words = ["--sample", "3000", "--records", "10", "--attack", "900", "1000", "10", "1000"]
    assert privsweep("membership", *words) == 1
    assert "a given fact is false of this learner, with confidence 0.95" in privsweep.out
