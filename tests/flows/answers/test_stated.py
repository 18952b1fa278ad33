"""Fields that a question must state: each door needs them, and files and stores keep their defaults."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import privsweep as ps
from flows.answers.question import answer_lines
from flows.cli.app import run
from flows.page.live import question
from flows.spec.sweep import parse
from privcore import PROBLEMS, DomainError, Problem, find_problem
from storage import open_store
from storage.errors import QueryError
from tests.flows.small_store import Command
from tests.privcore.draws import draw_problem

STATED = [(kind.name, name) for kind in PROBLEMS for name in kind.stated]
CLAIM: dict[str, Any] = {"claimed_epsilon": 1.0, "claimed_delta": 0.0}
SENTENCE = (
    "Expected neighbours for membership-private-advantage: substitution (one record is replaced by another) "
    "or add-remove (one record is added or removed); at the same epsilon, add-remove allows up to twice the "
    "advantage."
)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("kind", "name"), STATED)
def test_a_question_without_a_field_that_it_must_state_is_refused(kind: str, name: str) -> None:
    problem_class, draw, refused = find_problem(kind), random.Random(kind), 0
    for _ in range(30):
        fields = draw_problem(problem_class, draw).as_fields()
        try:
            problem_class.asked(fields)
        except DomainError:  # a release that is impossible for this bag
            continue
        less = {key: value for key, value in fields.items() if key != name}
        try:
            problem_class.asked(less)
        except DomainError as error:
            refused += str(error) == f"Expected {name} for {kind}: {problem_class.stated[name]}."
    assert refused, "the field never matters"
    assert problem_class.parameters[name].domain


def test_a_field_that_can_have_one_value_only_need_not_be_stated() -> None:
    posterior, alone = find_problem("label-posterior"), {"mechanism": "llp", "released": 1, "bag": "0.3"}
    assert posterior.asked(alone).as_fields()["member"] == 1
    with pytest.raises(DomainError, match="Expected member for label-posterior: the position"):
        posterior.asked(alone | {"bag": "0.3,0.4"})


def words(fields: dict[str, float]) -> list[str]:
    return [f"{name}={value}" for name, value in fields.items()]


@pytest.mark.parametrize("command", ["ask", "lookup", "plan", "run"])
def test_commands_refuse_a_question_that_leaves_the_relation_out(
    command: str, privsweep: Command, tmp_path: Path
) -> None:
    store = ["--store", str(tmp_path)]
    stated = ["membership-private-advantage", *words(CLAIM), "neighbours=add-remove"]
    assert privsweep("run", *stated, *store) == 0
    option = [] if command == "ask" else store
    assert privsweep(command, *stated[:-1], *option) == 2
    assert privsweep.err == f"privsweep: {SENTENCE}\n"
    assert privsweep(command, *stated, *option) == 0


def test_a_typed_grid_states_a_field_wherever_it_matters(privsweep: Command, tmp_path: Path) -> None:
    grid = ["plan", "label-member-advantage", "mechanism=llp", "--store", str(tmp_path)]
    assert privsweep(*grid, "bag=0.5") == 0, "a bag of one example has one member"
    assert privsweep(*grid, "bag=0.5,0.2") == 2
    assert "Expected member for label-member-advantage" in privsweep.err
    assert privsweep(*grid, "bag=0.5,0.2", "--method", "labels.member") == 2
    assert privsweep(*grid, "bag=0.5,0.2", "member=1,2") == 0


def test_lines_python_the_page_and_sql_refuse_it_too(tmp_path: Path) -> None:
    kind = "membership-private-advantage"
    (answer,) = answer_lines([json.dumps({"problem": kind, **CLAIM}).encode()])
    assert (answer["status"], answer["detail"]) == ("misuse", SENTENCE)
    with pytest.raises(DomainError, match="Expected neighbours"):
        ps.ask(kind, **CLAIM)
    with pytest.raises(DomainError, match="Expected neighbours"):
        question(json.dumps({"problem": kind, "fields": CLAIM}).encode())
    assert run(["run", kind, *words(CLAIM), "neighbours=add-remove", "--store", str(tmp_path)]) == 0
    with open_store(tmp_path) as store:
        macro = "from membership_private_advantage_at(claimed_epsilon := 1, claimed_delta := 0{})"
        with pytest.raises(
            QueryError, match=r"Expected neighbours in \{substitution, add-remove\}, got nothing"
        ):
            store.sql(macro.format(""))
        assert store.sql(macro.format(", neighbours := 'add-remove'"))["upper"].to_pylist()[0] < 0.4622


def test_sweep_files_and_stores_keep_their_defaults() -> None:
    text = """
        name = "claims"
        title = "Claims"
        [[grid]]
        problem = "membership-private-advantage"
        methods = ["membership.sharp"]
        product = {claimed_epsilon = [1.0]}
    """
    (grid,) = parse(text.encode(), "claims.toml").grids
    (problem,) = grid.problems()
    assert problem.as_fields()["neighbours"] == "substitution"
    assert problem.identity() == {"claimed_epsilon": 1.0}


@pytest.mark.parametrize("kind", [kind for kind in PROBLEMS if kind.stated], ids=lambda kind: kind.name)
def test_fields_that_a_question_states_exist_and_have_a_default(kind: type[Problem]) -> None:
    assert kind.stated.keys() <= kind.defaults().keys()
    assert all(not text.endswith(".") for text in kind.stated.values())
