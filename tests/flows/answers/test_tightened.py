"""Lookups that compute: the intersection of the stored and the computed bracket, with both sources."""

import json
import random
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flows.answers.ask import Asked, ask, is_tight
from flows.answers.held import WIDE, any_held, keep, tightened
from privcore import Answer, Problem, find, find_problem
from storage import open_store
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, imported, put, row

pytestmark = pytest.mark.sampled(3)

ALLOCATION = find_problem("allocation-epsilon")


def allocation(**fields: Any) -> Problem:
    return ALLOCATION.from_fields({"sigma": 1.0, "steps": 100, "delta": 1e-5, **fields})


def question(problem: Problem) -> list[str]:
    return [problem.name, *(f"{name}={value}" for name, value in problem.as_fields().items())]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random allocation, true and tight at two noises, and without amplification at one."""
    root = tmp_path_factory.mktemp("wide")
    method = find("allocation.certified")()
    for sigma in (0.9, 1.2):
        problem = allocation(sigma=sigma)
        bracket = ask(problem, [method])
        put(root / "store", row(problem, Answer.enclosure(bracket.lower, bracket.upper), method=method))
    put(root / "store", row(epsilon(), Answer.enclosure(4.37717, 4.37718)))
    return root / "store"


@pytest.fixture
def wide(made: Path, tmp_path: Path) -> Path:
    """A copy of the store, to be written to."""
    return Path(shutil.copytree(made, tmp_path / "store"))


def test_a_wide_answer_says_so_with_the_command_that_computes(privsweep: Command, wide: Path) -> None:
    assert privsweep("lookup", *question(allocation()), "--store", wide) == 0
    (line,) = (line for line in privsweep.out.splitlines() if line.startswith("width "))
    assert "%, wider than 5%; to compute a tight bracket: `privsweep lookup --compute " in line
    words = shlex.split(line.partition("`")[2].rstrip("`"))
    assert privsweep(*words[1:], "--json") == 0, "the command that it names"
    found = privsweep.json
    assert found["source"] == "computed"
    assert found["width"]["relative"] < 0.02
    assert found["width"]["command"] is None


def test_a_tight_answer_computes_nothing(privsweep: Command, wide: Path) -> None:
    assert privsweep("lookup", *question(allocation(sigma=0.9)), "--store", wide, "--compute", "--json") == 0
    assert privsweep.json["source"] == "store"
    assert privsweep("lookup", *question(allocation(sigma=0.9)), "--store", wide) == 0
    assert "wider" not in privsweep.out


def test_without_a_stored_answer_the_computed_one_is_printed(privsweep: Command, tmp_path: Path) -> None:
    words = ("lookup", *question(epsilon(sigma=2.0)))
    assert privsweep(*words) == 3
    assert privsweep.told(*words, "--compute")["source"] == "computed"
    assert list(tmp_path.iterdir()) == []


def test_kept_bounds_answer_the_next_lookup(privsweep: Command, wide: Path) -> None:
    words = ("lookup", *question(allocation()), "--store", wide)
    computed = privsweep.told(*words, "--compute", "--keep")
    stored = privsweep.told(*words)
    assert stored["source"] == "store"
    assert (stored["lower"], stored["upper"]) == (computed["lower"], computed["upper"])
    assert (
        privsweep("sql", "select sweep, status from results where sigma = 1", "--store", wide, "--json") == 0
    )
    assert {"sweep": "kept", "status": "ok"} in privsweep.json
    assert privsweep("verify", "--store", wide) == 0


@pytest.mark.sampled(1)
def test_the_better_end_of_both_sources_is_taken_and_named(privsweep: Command, wide: Path) -> None:
    problem = allocation()
    true = ask(problem, [find("allocation.certified")()])
    better = (true.lower + true.upper) / 2
    put(wide, row(problem, Answer.at_most(better), method=find("allocation.direct")()))
    words = ("lookup", *question(problem), "--store", wide, "--compute", "--explain")
    found: Mapping[str, Any] = privsweep.told(*words)
    assert found["source"] == "store-computed"
    assert (found["lower"], found["upper"]) == (true.lower, better)
    assert (found["lower_from"], found["upper_from"]["sigma"]) == (None, 1.0)
    ends = found["explanation"]["ends"]
    assert ends["lower"]["sweep"] is None
    assert ends["upper"]["sweep"] == "made-up"
    assert privsweep(*words) == 0
    assert "; upper end: store, " in privsweep.out


def test_a_stored_bound_that_a_computed_one_contradicts_is_a_conflict(privsweep: Command, wide: Path) -> None:
    put(wide, row(epsilon(sigma=2.0), Answer.at_most(0.5)))
    assert privsweep("lookup", *question(epsilon(sigma=2.0)), "--store", wide, "--compute") == 1
    assert "conflict: A stored and a computed end contradict one another" in privsweep.err
    assert "; the stored bracket is from: store, exactly this problem; `privsweep verify" in privsweep.err


def test_a_conflict_names_the_table_of_an_imported_bound_and_how_to_take_it_back(
    privsweep: Command, tmp_path: Path
) -> None:
    table = imported(tmp_path / "store", row(epsilon(sigma=2.0), Answer.at_most(0.5)))
    words = ("lookup", *question(epsilon(sigma=2.0)), "--store", tmp_path / "store", "--compute")
    assert privsweep(*words) == 1
    assert f"imported from the table {table.version}" in privsweep.err
    assert f"`privsweep table remove {table.version}` takes that import back" in privsweep.err
    assert privsweep(*words, "--json") == 1
    assert (privsweep.json["status"], privsweep.json["source"]) == ("conflict", "store-computed")
    assert privsweep.json["imported"] == [table.version]


def test_a_limit_leaves_the_stored_answer(privsweep: Command, wide: Path) -> None:
    words = ("lookup", *question(allocation()), "--store", wide, "--compute", "--limit-seconds", "0")
    assert privsweep(*words) == 0
    assert "nothing better was computed: Not started: " in privsweep.out


def test_an_end_by_convexity_names_both_rows_and_the_proof(privsweep: Command, tmp_path: Path) -> None:
    ends = {1e-6: 5.0, 1e-5: 4.0}
    put(tmp_path, [row(epsilon(delta=d), Answer.enclosure(end - 0.1, end)) for d, end in ends.items()])
    words = ("lookup", *question(epsilon(delta=4e-6)), "--store", tmp_path, "--explain")
    assert privsweep(*words) == 0
    text = " ".join(privsweep.out.split())
    assert "store, by monotonicity and convexity: " in text
    assert "upper end from delta=1e-6 and delta=1e-5" in text
    assert "so e^epsilon is convex in delta" in text
    found = json.loads(json.dumps(privsweep.told(*words)))
    assert found["source"] == "store-convex"
    assert found["upper_also"]["delta"] == 1e-5
    upper = found["explanation"]["ends"]["upper"]
    assert (upper["fields"]["delta"], upper["also"]["fields"]["delta"]) == (1e-6, 1e-5)


@pytest.mark.thorough
def test_every_drawn_answer_is_tight_and_agrees_with_its_sources(wide: Path) -> None:
    rng, answers = random.Random(24), []
    with open_store(wide) as store:
        for _ in range(8):
            problem = allocation(sigma=rng.uniform(0.9, 1.2), steps=rng.randint(50, 200))
            stored = store.lookup(problem)
            answer = tightened(problem, any_held(store, problem))
            assert is_tight(answer.bracket, WIDE)
            again = ask(problem, [find("allocation.direct")(), find("allocation.largest")()])
            assert answer.bracket.upper >= again.lower
            assert answer.bracket.lower <= again.upper
            if stored is not None:
                assert stored.lower <= answer.bracket.lower <= answer.bracket.upper <= stored.upper
            answers.append(answer)
        replies = [each for one in answers if isinstance(one.answer, Asked) for each in one.answer.replies]
        assert keep(store, answers) == len([reply for reply in replies if reply.answer.ok]) > 0
