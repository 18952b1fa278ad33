"""`privsweep membership`: all upper bounds and attacks on one problem; and its errors."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

from flows.answers.ask import ask
from flows.answers.membership import AccuracyWeights, Known, sandwich
from privcore import DomainError, find_problem
from tests.flows.small_store import Command

PRIVATE = ("--epsilon", "1", "--delta", "0", "--adjacency", "add-remove")


def content(privsweep: Command, *words: object, code: int = 0) -> Any:
    assert privsweep("membership", *words, "--json") == code
    return privsweep.json


def test_the_bracket_is_between_the_attack_and_the_least_limit(privsweep: Command) -> None:
    shown = content(
        privsweep, "--law", "uniform(10)", "--records", 100, *PRIVATE, "--attack", 350, 1000, 250, 1000
    )
    assert [row["problem"] for row in shown["bounds"]] == [
        "membership-attack-advantage",
        "membership-advantage",
        "membership-private-advantage",
    ]
    assert shown["advantage"]["upper"] == pytest.approx(0.118678812142, abs=1e-11)
    assert 0.05 < shown["advantage"]["lower"] < 0.1
    assert shown["confidence"] == 0.95
    assert shown["security"]["lower"] == 1.0 - shown["advantage"]["upper"]
    assert shown["certain"]["advantage"]["lower"] == 0.0
    assert shown["certain"]["advantage"]["upper"] == shown["advantage"]["upper"]


def test_a_limit_over_many_learners_is_no_lower_end_for_this_one() -> None:
    row = sandwich(Known(law="uniform(10)", records=100))["bounds"][0]
    assert row["lower"] == 0.0
    assert row["worst_case"]["lower"] == pytest.approx(row["upper"], rel=1e-9)


def test_shares_and_weights_become_odds_and_accuracies() -> None:
    known = Known(
        law="uniform(10)", records=100, tested=AccuracyWeights(nonmember_share=0.6, member_weight=1.2)
    )
    found = sandwich(known)
    assert found["odds"] == pytest.approx(1.25)
    assert found["advantage"]["upper"] == pytest.approx(0.03738873, abs=1e-8)
    assert found["accuracy"]["lower"] == pytest.approx(0.6)
    assert found["accuracy"]["upper"] == pytest.approx(0.6 + 0.48 * 0.03738873, abs=1e-8)


def test_a_proof_needs_no_confidence(privsweep: Command) -> None:
    assert privsweep("membership", "--bits", "64", "--records", "1000") == 0
    printed = privsweep.out
    assert "proved" in printed
    assert "with confidence" not in printed
    assert "0.148932" in printed, "sqrt(64 ln 2 / 2000) rounded up"
    upper = sandwich(Known(bits=64, records=1000))["advantage"]["upper"]
    assert upper == pytest.approx(math.sqrt(64 * math.log(2.0) / 2000.0), rel=1e-6)


def test_an_attack_beyond_the_limits_ends_with_1_and_says_so(privsweep: Command) -> None:
    assert privsweep("membership", "--attack", "80", "100", "5", "100", *PRIVATE) == 1
    assert "the attack exceeds the upper bounds" in privsweep.out
    shown = content(privsweep, "--attack", 80, 100, 5, 100, *PRIVATE, code=1)
    assert shown["consistent"] is False
    assert "advantage" not in shown


def test_a_column_of_categories_is_a_law_and_a_sample(privsweep: Command, tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("city\n" + "\n".join(["Rome"] * 600 + ["Oslo"] * 300 + ["Bern"] * 100) + "\n")
    law = content(privsweep, "--law", f"column({file},city)", "--records", 50)
    written = content(privsweep, "--law", "atoms(0.6,0.3,0.1)", "--records", 50)
    assert law["advantage"]["upper"] == pytest.approx(written["advantage"]["upper"], rel=1e-9)
    assert "sha256" not in law["bounds"][0]["known"]
    sample = content(privsweep, "--sample", f"column({file},city)", "--records", 50)
    assert sample["confidence"] == 0.95
    assert sample["advantage"]["upper"] > law["advantage"]["upper"]


def test_the_law_of_a_file_is_proved_for_its_values_alone_and_leads_to_the_sample(
    privsweep: Command, tmp_path: Path
) -> None:
    file = tmp_path / "drawn.csv"
    file.write_text("value\n" + "\n".join(str(k % 95) for k in range(100)) + "\n")
    words = ["membership", "--law", f"column({file},value)", "--records", "50"]
    assert privsweep(*words) == 0
    printed = privsweep.out
    assert "proved for the values of the file alone" in printed
    assert f"assumed: values that are not in the column value of {file} do not exist" in printed
    assert "--sample" in printed
    assert printed.splitlines()[-1].endswith(", for the values of the file alone")
    row = content(privsweep, *words[1:])["bounds"][0]
    assert row["kind"] == "proved for the values of the file alone"
    assert privsweep(*words, "--epsilon", "0.001", *PRIVATE[2:]) == 0
    assert "alone" not in privsweep.out.splitlines()[-1], "the guarantee alone gives the bracket"
    assert "do not exist" in row["assumed"]
    for command in (["ask"], ["ask", "--json"], ["lookup", "--compute"], ["lookup", "--compute", "--json"]):
        assert privsweep(*command, "membership-advantage", f"law=column({file},value)", "records=50") == 0
        assert "do not exist" in privsweep.out, command


@pytest.mark.parametrize("word", ["uniform(100)", "atoms(0.5,0.3,0.2)", "zipf(1.2)"])
def test_a_law_that_is_written_out_assumes_nothing(privsweep: Command, word: str) -> None:
    shown = content(privsweep, "--law", word, "--records", 50)
    assert shown["bounds"][0]["kind"] == "proved"
    assert shown["assumed"] == ""


@pytest.mark.parametrize("words", [("--adjacency", "add-remove"), ("--neighbours", "add-remove")])
def test_an_epsilon_may_be_for_adding_or_removing_a_record(
    privsweep: Command, words: tuple[str, ...]
) -> None:
    shown = content(privsweep, "--epsilon", 1, "--delta", 0, *words)
    assert shown["bounds"][0]["fields"]["neighbours"] == "add-remove"
    assert shown["advantage"]["upper"] == pytest.approx(math.tanh(0.5), rel=1e-12)


@pytest.mark.parametrize("option", ["--adjacency", "--neighbours"])
@pytest.mark.parametrize("word", ["replace-one", "substitution"])
def test_replacing_a_record_has_two_names_in_both_options(privsweep: Command, option: str, word: str) -> None:
    shown = content(privsweep, "--epsilon", 1, "--delta", 0, option, word)
    assert shown["bounds"][0]["fields"]["neighbours"] == "substitution"
    assert shown["advantage"]["upper"] == pytest.approx(math.tanh(0.25), rel=1e-12)


def test_adding_or_removing_gives_at_most_twice_the_bound_of_replacing_and_never_less() -> None:
    kind, draw = find_problem("membership-private-advantage"), random.Random(3)
    for _ in range(60):
        fields = {
            "claimed_epsilon": draw.choice([0.0, 10 ** draw.uniform(-3, 1.3)]),
            "claimed_delta": draw.choice([0.0, 1.0, 10 ** draw.uniform(-9, 0)]),
            "odds": draw.choice([1.0, 10 ** draw.uniform(-2, 2)]),
        }
        replaced, added = (
            ask(kind.from_fields({**fields, "neighbours": word})) for word in ("substitution", "add-remove")
        )
        assert replaced.upper <= added.upper * (1.0 + 1e-12), fields
        if fields["claimed_delta"] == 0.0 and fields["odds"] == 1.0:
            assert replaced.upper >= 0.5 * added.upper, fields


def test_ends_that_prove_nothing_are_not_printed(privsweep: Command) -> None:
    attack = ["membership", "--attack", "620", "1000", "40", "1000", "--nonmember-share", "0.9"]
    assert privsweep(*attack, "--member-weight", "2") == 0
    printed = privsweep.out
    assert "with confidence 0.95" in printed
    assert "certain" not in printed
    assert "tested records: a share of 0.9 are non-members, a member counts 2" in printed
    assert privsweep("membership", "--attack", "560", "1000", "480", "1000", *PRIVATE) == 0
    assert "; certain [0, 0.46211" in privsweep.out


def test_nothing_known_is_refused_in_python_too() -> None:
    with pytest.raises(DomainError, match="at least one fact"):
        sandwich(Known())
