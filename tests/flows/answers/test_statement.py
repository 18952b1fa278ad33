"""The statement about a training run: complete for every problem, and no better than the proved bracket."""

import re
from importlib.metadata import version
from pathlib import Path
from statistics import NormalDist

import pytest

from flows.answers.sourced import computed
from flows.answers.training.statement import NEIGHBOURS, statement, unit_of
from flows.printing import rounded_up
from privcore import METHODS, DomainError, find_problem
from privcore.parameter import Choice
from tests.flows.small_store import Command, point, store_of

RUNS = {
    "allocation": ("--sigma", 2, "--steps", 20),
    "poisson": ("--sigma", 2, "--steps", 20, "--sampling-probability", 0.1),
    "shuffling": ("--sigma", 2, "--steps", 20, "--adjacency", "zero-out"),
    "balls-in-bins": ("--sigma", 2, "--steps", 20, "--epochs", 2, "--redraw", "once"),
    "fixed-size": ("--sigma", 2, "--steps", 20, "--adjacency", "replace-one", "--sampling-probability", 0.1),
    "none": ("--sigma", 2),
}
PHASES = (
    "--run",
    "poisson(sigma=2,steps=9,sampling_probability=0.1); none(sigma=9,steps=1)",
    "--adjacency",
    "add-remove",
)
CASES = [*((("--sampling", name), words) for name, words in RUNS.items()), ((), PHASES)]


@pytest.mark.parametrize(("sampling", "words"), CASES, ids=str)
def test_every_run_has_a_statement_with_rounded_ends_and_the_proofs(
    privsweep: Command, sampling: tuple[str, ...], words: tuple[object, ...]
) -> None:
    asked = ("epsilon", *sampling, *words, "--delta", 1e-5, "--statement")
    assert privsweep(*asked, "text", "--json") == 0, privsweep.err
    content = privsweep.json
    facts = content["statement"]
    assert privsweep(*asked, "text") == 0
    assert privsweep.out == facts["text"] + "\n"
    high, low = re.findall(
        r"epsilon is at most (\S+) at delta=1e-5; .* not less than (\S+)\.", privsweep.out
    )[0]
    assert float(low) <= content["lower"] <= content["upper"] <= float(high)
    for end in ("lower", "upper"):
        method = METHODS.get(content[f"{end}_method"])
        assert method is not None
        assert facts[f"{end}_proof"] == f"{method.name}, version {method.version} ({method.reference})"
        assert facts[f"{end}_proof"] in privsweep.out
    assert facts["parameters"] == content["fields"]
    assert facts["sampler_declared"] is True
    for told in (*facts["assumed"], *facts["not_covered"], facts["neighbours"], facts["mechanism"]):
        assert told in privsweep.out
    assert f"privsweep {version('privsweep')}" in privsweep.out
    assert privsweep(*asked, "markdown") == 0
    lines = privsweep.out.splitlines()
    assert lines[:2] == ["**Differential privacy**", ""]
    assert all(re.fullmatch(r"- \*[A-Z][a-z ]+:\* .+\.", line) for line in lines[2:])


@pytest.mark.parametrize(
    "kind", ["allocation-epsilon", "shuffling-epsilon", "fixed-size-epsilon", "run-epsilon"]
)
def test_every_neighbouring_relation_has_words(kind: str) -> None:
    relation = find_problem(kind).parameters["adjacency"]
    assert isinstance(relation, Choice)
    assert set(relation.choices) <= NEIGHBOURS.keys()


def test_a_statement_bounds_membership_tests_and_one_example_of_an_owner(privsweep: Command) -> None:
    """For steps that all use 3 examples, everything follows from mu = 3 sqrt(4) / 6 = 1."""
    words = ("--run", "none(sigma=6,steps=4,group=3)", "--adjacency", "zero-out", "--delta", 1e-5)
    facts = privsweep.told("epsilon", *words, "--statement", "text")["statement"]
    told = facts["membership"]
    normal = NormalDist()
    for each, rate in zip(told["rates"], (1e-3, 1e-2), strict=True):
        power = normal.cdf(normal.inv_cdf(rate) + 1.0)
        assert each["false_positive_rate"] == rate
        assert power <= each["largest_true_positive_rate"] <= power * (1 + 1e-6)
        assert rounded_up(each["largest_true_positive_rate"]) in facts["text"]
    advantage = 2.0 * normal.cdf(0.5) - 1.0
    assert advantage <= told["largest_advantage"] <= advantage * (1 + 1e-6)
    alone = find_problem("unamplified-epsilon").from_fields({"sigma": 3, "delta": 1e-5})
    assert facts["upper_for_one_example"] == pytest.approx(computed(alone).bracket.upper, rel=1e-6)
    assert (
        f"For one example alone, epsilon is at most {rounded_up(facts['upper_for_one_example'])}."
        in (facts["text"])
    )


@pytest.mark.parametrize(("direction", "relation"), [("add", "add-remove"), ("remove", "add-remove")])
def test_a_direction_does_not_hide_tests_of_membership(
    privsweep: Command, direction: str, relation: str
) -> None:
    """A threshold of the sum detects an added example in both directions of epsilon."""
    words = ("epsilon", "--sampling", "poisson", "--sigma", 1, "--steps", 1, "--sampling-probability", 0.1)
    found = []
    for each in (direction, relation):
        assert privsweep(*words, "--delta", 1e-5, "--adjacency", each, "--statement", "text", "--json") == 0
        found.append(privsweep.json["statement"]["membership"])
    assert found[0] == found[1]
    normal = NormalDist()
    threshold = 0.9 * 1e-3 + 0.1 * normal.cdf(1.0 + normal.inv_cdf(1e-3))
    assert found[0]["rates"][0]["largest_true_positive_rate"] >= threshold


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_direction_of_shuffling_is_one_of_zero_out(privsweep: Command, direction: str) -> None:
    words = ("epsilon", "--sampling", "shuffling", "--sigma", 2, "--steps", 20, "--delta", 1e-5)
    facts = privsweep.told(*words, "--adjacency", direction, "--statement", "text")["statement"]
    assert facts["adjacency"] == f"zero-out-{direction}"
    assert f"zero-out, in the direction {direction}" in facts["text"]
    assert facts["membership"]["largest_advantage"] > 0.0


def test_a_statement_about_a_stored_answer_computes_nothing(privsweep: Command, tmp_path: Path) -> None:
    fields = {"sigma": 2, "steps": 20, "sampling_probability": 0.1, "delta": 1e-5}
    store = store_of(tmp_path / "small", [point("poisson-epsilon", "poisson.certified", **fields)])
    words = ("epsilon", "--sampling", "poisson", *RUNS["poisson"], "--delta", 1e-5, "--store", store)
    assert privsweep.told(*words, "--stored-only", "--statement", "text")["statement"]["membership"] is None
    assert "Membership:" not in privsweep.json["statement"]["text"]
    assert privsweep(*words, "--statement", "text") == 0
    assert "Membership:" in privsweep.out


def test_a_statement_about_many_public_steps_has_all_its_numbers(privsweep: Command) -> None:
    many = ("--sigma", 1e6, "--steps", 10**9, "--participations", 10**9, "--epochs", 10, "--delta", 1e-5)
    assert privsweep("epsilon", "--sampling", "none", *many, "--statement", "text", "--json") == 0
    assert privsweep.json["statement"]["membership"]["largest_advantage"] > 0.0


def test_the_unit_of_privacy_is_an_owner_if_a_phase_groups_examples() -> None:
    run = find_problem("run-epsilon").from_fields
    one = run({"adjacency": "add-remove", "delta": 1e-5, "phases": "none(sigma=9,steps=1)"})
    assert unit_of(one) == "one example"
    phases = "poisson(sigma=9,steps=2,sampling_probability=0.1,group=3); none(sigma=9,steps=1)"
    grouped = run({"adjacency": "add-remove", "delta": 1e-5, "phases": phases})
    assert unit_of(grouped) == "one owner with at most 3 examples in phase 1, 1 in phase 2"
    phases = phases.replace("steps=1)", "steps=1,group=3)")
    assert unit_of(run({**grouped.as_fields(), "phases": phases})) == "one owner with at most 3 examples"
    assert (
        unit_of(find_problem("unamplified-epsilon").from_fields({"sigma": 1, "delta": 1e-5})) == "one example"
    )


def test_without_a_proved_upper_end_there_is_no_statement(privsweep: Command) -> None:
    words = ("epsilon", "--sampling", "poisson", *RUNS["poisson"], "--delta", 1e-5)
    assert privsweep(*words, "--method", "poisson.pld", "--statement", "text") == 2
    assert (
        privsweep.err == "privsweep: Expected an answer with a proved upper end for --statement, got none.\n"
    )
    assert privsweep(*words, "--statement", "html") == 2
    assert privsweep.err == "privsweep: Expected --statement text or markdown, got 'html'.\n"
    assert privsweep.out == ""
    fields = {"sigma": 2, "steps": 9, "sampling_probability": 0.1, "epsilon": 1}
    answer = computed(find_problem("poisson-delta").from_fields(fields))
    with pytest.raises(DomainError, match="Expected a problem about epsilon of a training run, got poisson"):
        statement(answer, limit_seconds=1.0)
