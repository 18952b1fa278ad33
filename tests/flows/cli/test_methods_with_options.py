"""Options of a method on the command line, and estimates that were asked for by the name of their method."""

from pathlib import Path

import pytest

from tests.flows.small_store import Command

NOISELESS = ("--sampling", "poisson", "--steps", 100, "--sampling-probability", 0.01, "--delta", 1e-6)
POISSON = ("--sigma", 1, *NOISELESS)
FIELDS = ("sigma=1", "steps=100", "sampling_probability=0.01", "delta=1e-6")


def test_every_command_with_methods_takes_their_options(privsweep: Command) -> None:
    narrow = ("--method", "poisson.certified(tolerance=1e-4)")
    epsilon = privsweep.told("epsilon", *POISSON, *narrow)
    assert epsilon["upper"] / epsilon["lower"] <= 1.0001
    assert privsweep("ask", "poisson-epsilon", *FIELDS, *narrow, "--json") == 0
    assert [privsweep.json[end] for end in ("lower", "upper")] == [epsilon["lower"], epsilon["upper"]]
    found = privsweep.told("noise", "--epsilon", 1, *NOISELESS, *narrow)
    assert privsweep("epsilon", "--sigma", found["sigma"], *NOISELESS, *narrow, "--json") == 0
    assert privsweep.json["upper"] == found["upper"] <= 1.0
    assert found["gap"] < 0.002
    assert privsweep("plan", "poisson-epsilon", *FIELDS, *narrow) == 0
    assert "poisson.certified(tolerance=0.0001)" in privsweep.out
    lines = Path("questions.jsonl")
    lines.write_text('{"problem": "unamplified-epsilon", "sigma": 1, "delta": 1e-5}\n')
    assert privsweep("ask", "--batch", lines, "--method", "unamplified.exact()") == 0
    assert privsweep.json["status"] == "ok"


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (
            "poisson.certified(",
            "Expected a method as NAME or NAME(option=value,...), got 'poisson.certified('.",
        ),
        ("", "Expected a method as NAME or NAME(option=value,...), got ''."),
        ("poisson.certified(0.1)", "Expected option=value in 'poisson.certified(0.1)', got '0.1'."),
        ("poisson.certified(tolerance=)", "Expected option=value in 'poisson.certified(tolerance=)', got"),
        (
            "poisson.certified(tolerance=0.1,tolerance=0.1)",
            "Expected each option of poisson.certified once, got tolerance twice.",
        ),
        ("poisson.certified(tolerance=7)", "Expected tolerance in [0.0001, 1], got tolerance=7."),
        ("poisson.certified(tolerance=x)", "Expected tolerance in [0.0001, 1], got tolerance='x'."),
        ("poisson.certified(toleranec=0.1)", "Unknown option of poisson.certified toleranec. Did you mean"),
        (
            "poisson.certifed(tolerance=0.1)",
            "Unknown method poisson.certifed. Did you mean poisson.certified?",
        ),
        ("poisson.pld(orders=2)", "Unknown option of poisson.pld orders: the method has no options."),
    ],
)
@pytest.mark.parametrize("command", ["epsilon", "ask", "plan"])
def test_an_invalid_option_is_one_sentence_and_exit_code_two(
    privsweep: Command, command: str, word: str, sentence: str
) -> None:
    words = POISSON if command == "epsilon" else ("poisson-epsilon", *FIELDS)
    assert privsweep(command, *words, "--method", word) == 2
    assert sentence in privsweep.err
    assert privsweep.err.count("\n") == 1
    assert privsweep.out == ""


def test_an_estimate_that_was_asked_for_is_shown_and_marked(privsweep: Command) -> None:
    asked = ("--method", "poisson.pld")
    content = privsweep.told("epsilon", *POISSON, *asked)
    (estimate,) = content["estimates"].values()
    assert (content["lower"], content["upper"]) == (0.0, "inf")
    assert (content["kind"], content["method"]) == ("estimate, not a bound", "poisson.pld")
    for command in (("epsilon", *POISSON), ("ask", "poisson-epsilon", *FIELDS)):
        assert privsweep(*command, *asked) == 0
        assert f"epsilon is about {estimate:.6g}, an estimate by poisson.pld, not a bound" in privsweep.out
        assert "[0, inf]" not in privsweep.out


def test_an_estimate_is_the_headline_where_nothing_is_proved(privsweep: Command) -> None:
    stated = ("family=approximate", "guessing=clearest")
    assert privsweep("ask", "audit-best-guesses", "canaries=10", "mu=3", "delta=0", *stated) == 0
    assert "guesses is about 9, an estimate by auditing.best, not a bound" in privsweep.out
    assert "guesses in [" not in privsweep.out


def test_an_estimate_is_computed_although_a_bound_is_tight(privsweep: Command) -> None:
    both = ("--method", "poisson.pld", "--method", "poisson.certified")
    content = privsweep.told("epsilon", *POISSON, *both)
    assert content["lower"] <= content["estimates"]["poisson.pld"] <= 1.0001 * content["upper"]
    assert content["kind"] == "enclosure, proved"
    assert privsweep("epsilon", *POISSON, *both) == 0
    assert privsweep.out.startswith("epsilon in [")
    assert "an estimate by poisson.pld, not a bound" in privsweep.out.splitlines()[1]
