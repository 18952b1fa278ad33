"""Stored intervals with a confidence below 1: lookups answer with proofs, and count the intervals."""

import shlex
from pathlib import Path

import pytest

from privcore import Answer, find, find_problem
from tests.flows.small_store import Command
from tests.storage.made_up import imported, put, row

BAGS = find_problem("label-advantage").from_fields({"mechanism": "llp", "prior": "beta(2,3)", "bag_size": 8})
WORDS = ("label-advantage", "mechanism=llp", "prior=beta(2,3)", "bag_size=8")
LIKELY = Answer.enclosure(0.052, 0.055, confidence=0.999)


@pytest.fixture
def privsweep(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVSWEEP_TABLE", "none")
    return Command(capsys)


def draw(*answers: Answer) -> None:
    """Store intervals of simulations of different sizes."""
    for k, answer in enumerate(answers):
        put(
            Path("store"), row(BAGS, answer, method=find("labels.sampling").from_knobs({"samples": 1000 + k}))
        )


def test_a_lookup_without_a_proof_names_the_intervals_and_prints_them_by_its_command(
    privsweep: Command,
) -> None:
    draw(Answer.enclosure(0.04, 0.06, confidence=0.999), LIKELY)
    assert privsweep("lookup", *WORDS) == 3
    assert (
        "is proved in the store. 2 stored intervals with a confidence below 1 are left out" in privsweep.err
    )
    assert "advantage in [0.0519999, 0.0550001] with confidence 0.999 (labels.sampling)" in privsweep.err
    command = shlex.split(privsweep.err.split("`")[1])
    assert privsweep(*command[1:], "--json") == 0
    assert sorted(each["lower"] for each in privsweep.json) == [0.04, 0.052]


def test_a_proof_is_the_answer_and_the_intervals_are_named_after_it(privsweep: Command) -> None:
    draw(LIKELY)
    put(Path("store"), row(BAGS, Answer.enclosure(0.05, 0.06), method=find("labels.cells")()))
    assert privsweep("lookup", *WORDS) == 0
    assert "intervals  1 stored interval with a confidence below 1 is left out" in privsweep.out
    assert privsweep("lookup", *WORDS, "--json") == 0
    assert privsweep.json["confidence"] == 1.0
    assert privsweep.json["intervals"]["count"] == 1
    assert privsweep.json["intervals"]["narrowest"]["upper"] == 0.055


def test_of_lower_ends_alone_the_largest_is_the_narrowest(privsweep: Command) -> None:
    audit = {"canaries": 1000, "guesses": 100, "correct": 90, "design": "independent", "delta": 1e-4}
    problem = find_problem("audit-epsilon").from_fields(audit)
    for name, lower in (("steinke", 1.5), ("tightest", 1.6), ("approximate", 1.55)):
        put(
            Path("store"),
            row(problem, Answer.at_least(lower, confidence=0.95), method=find(f"auditing.{name}")()),
        )
    words = ("lookup", "audit-epsilon", *(f"{name}={value}" for name, value in audit.items()))
    assert privsweep(*words) == 3
    assert "the narrowest: epsilon in [1.6, inf] with confidence 0.95 (auditing.tightest)" in privsweep.err
    assert "Neighbours: one canary is added or removed (add-remove)." in privsweep.err


def test_an_interval_from_a_lookup_table_is_named_as_imported(privsweep: Command, tmp_path: Path) -> None:
    table = imported(tmp_path / "store", row(BAGS, LIKELY, method=find("labels.sampling")()))
    told = f"(labels.sampling, imported and not recomputed, from the lookup table {table.version})"
    assert privsweep("lookup", *WORDS) == 3
    assert told in privsweep.err
    put(Path("store"), row(BAGS, Answer.enclosure(0.05, 0.06), method=find("labels.cells")()))
    assert privsweep("lookup", *WORDS) == 0
    assert told in privsweep.out
    assert privsweep("lookup", *WORDS, "--json") == 0
    assert privsweep.json["intervals"]["narrowest"]["imported"] == [table.version]


def test_the_table_of_a_sweep_counts_the_problems_with_intervals_alone(privsweep: Command) -> None:
    draw(LIKELY, LIKELY)
    Path("bags.toml").write_text(
        'name = "bags"\n[[grid]]\nproblem = "label-advantage"\nmethods = ["labels.sampling"]\n'
        'product = {mechanism = ["llp"], prior = ["beta(2,3)"], bag_size = [8, 9]}\n'
    )
    assert privsweep("lookup", "bags.toml") == 0
    assert "intervals  1 problem has stored intervals with a confidence below 1" in privsweep.out
    assert "intervals only" in privsweep.out
    assert "not stored" in privsweep.out
    command = shlex.split(privsweep.out.split("`")[1])
    assert privsweep(*command[1:], "--json") == 0
    assert len(privsweep.json) == 2
    assert privsweep("lookup", "bags.toml", "--json") == 0
    assert [line.get("intervals", 0) for line in privsweep.json["problems"]] == [2, 0]
    Path("store").rename("other")
    assert privsweep("lookup", "bags.toml", "--store", "other") == 0
    command = shlex.split(privsweep.out.split("`")[1])
    assert privsweep(*command[1:], "--json") == 0
    assert len(privsweep.json) == 2


def test_without_intervals_a_lookup_has_no_such_line(privsweep: Command) -> None:
    put(Path("store"), row(BAGS, Answer.enclosure(0.05, 0.06), method=find("labels.cells")()))
    assert privsweep("lookup", *WORDS, "--json") == 0
    assert "intervals" not in privsweep.json
