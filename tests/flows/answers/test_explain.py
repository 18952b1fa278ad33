"""The output of --explain repeats the declarations of problems, methods and rows."""

from pathlib import Path
from typing import Any

import pytest

from flows.answers.catalogue import assumptions_of, meaning_of
from privcore import METHODS, PROBLEMS, find
from storage import open_store, provenance
from tests.flows.small_store import WHEN, Command, point, store_of

RUN = ("--sampling", "none", "--delta", "1e-5")
STORED = [point("unamplified-epsilon", "unamplified.exact", sigma=sigma, delta=1e-5) for sigma in (1.0, 2.0)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("explained") / "store", STORED)


def test_every_problem_and_method_has_something_to_tell() -> None:
    for problem in PROBLEMS:
        assert meaning_of(problem).endswith(".")
    for method in METHODS:
        assert meaning_of(method)
        assert assumptions_of(method)
        assert "Attributes:" not in assumptions_of(method)


def test_the_block_names_everything_a_reader_asks_for(privsweep: Command) -> None:
    assert privsweep("epsilon", *RUN, "--sigma", "1", "--explain") == 0
    block = privsweep.out.split("\n\n", 1)[1]
    for label in ("question", "sampling", "neighbours", "both ends", "  theorem", "  claim", "  assumes"):
        assert f"\n{label}" in f"\n{block}", label
    assert find("unamplified.exact").reference in block
    assert "Neighbouring relation: remove (the first data set has the example)" in block
    assert f"row        {STORED[0].id}, computed now, not stored" in block
    assert f"commit     {provenance().git_commit}" in block


def test_without_explain_nothing_of_it_is_printed(privsweep: Command) -> None:
    assert privsweep("epsilon", *RUN, "--sigma", "1") == 0
    assert "theorem" not in privsweep.out
    assert "explanation" not in privsweep.told("epsilon", *RUN, "--sigma", "1")


def ends(content: Any) -> Any:
    return content["explanation"]["ends"]


@pytest.mark.parametrize("command", ["epsilon", "lookup"])
def test_a_stored_answer_names_its_row_sweep_commit_and_date(
    privsweep: Command, store: Path, command: str
) -> None:
    words = (
        ("epsilon", *RUN, "--sigma", "1")
        if command == "epsilon"
        else ("lookup", "unamplified-epsilon", "sigma=1", "delta=1e-5")
    )
    assert privsweep(*words, "--store", store, "--explain", "--json") == 0
    lower, upper = ends(privsweep.json)["lower"], ends(privsweep.json)["upper"]
    assert lower == upper
    assert (lower["point_id"], lower["sweep"]) == (STORED[0].id, "small")
    assert lower["finished_at"] == WHEN.isoformat()
    with open_store(store) as opened:
        (row,) = opened.sql(
            f"select git_commit from results where point_id = '{lower['point_id']}'"
        ).to_pylist()
    assert lower["git_commit"] == row["git_commit"]
    assert lower["because"] == {}
    assert privsweep(*words, "--store", store, "--explain") == 0
    assert f"row        {STORED[0].id}, sweep small" in privsweep.out
    assert "date       2026-01-02 03:04:05 UTC" in privsweep.out


def test_an_answer_by_monotonicity_gives_the_proof_for_each_field_that_differs(
    privsweep: Command, store: Path
) -> None:
    words = ("lookup", "unamplified-epsilon", "sigma=1.5", "delta=1e-5", "--store", store)
    found = ends(privsweep.told(*words, "--explain"))
    assert (found["lower"]["point_id"], found["upper"]["point_id"]) == (STORED[1].id, STORED[0].id)
    proof = type(STORED[0].problem).monotone["sigma"].proof
    assert found["lower"]["because"] == found["upper"]["because"] == {"sigma": proof}
    assert privsweep(*words, "--explain") == 0
    assert privsweep.out.count("because    sigma: Adding independent Gaussian noise") == 2
    assert "answers    unamplified-epsilon sigma=2 delta=1e-5" in privsweep.out


def test_two_methods_are_explained_one_by_one(privsweep: Command) -> None:
    words = ("--sigma", "1", "--steps", "100", "--delta", "1e-5", "--examples", "100")
    assert privsweep("compare", *words, "--explain", "--json") == 0
    rows = {row["sampling"]: row for row in privsweep.json["rows"]}
    found = ends(rows["shuffling"])
    assert found["lower"]["method"] == "shuffling.composed"
    assert (found["upper"]["method"], found["upper"]["problem"]) == ("shuffling.clones", "shuffling-epsilon")
    assert ends(rows["allocation"])["lower"]["theorem"] == find("allocation.certified").reference
    assert privsweep("compare", *words, "--explain") == 0
    assert privsweep.out.count("  theorem") == 6


def test_noise_explains_both_sides(privsweep: Command) -> None:
    words = ("noise", "--epsilon", "1", *RUN)
    told = privsweep.told(*words, "--explain")["explanation"]
    assert told["suffices"]["ends"]["lower"] is None
    assert told["suffices"]["parameters"]["sigma"]["value"] == privsweep.json["sigma"]
    assert told["does_not_suffice"]["ends"]["lower"]["method"] == "unamplified.exact"
    assert told["does_not_suffice"]["parameters"]["sigma"]["value"] == privsweep.json["sigma_short"]
    assert privsweep(*words, "--explain") == 0
    assert "\nwhy sigma 3.7321 suffices\n" in privsweep.out
    assert "\nwhy sigma 3.7291 does not suffice\n" in privsweep.out


def test_an_estimate_alone_proves_nothing_and_says_so(privsweep: Command) -> None:
    words = ("epsilon", "--sampling", "poisson", "--sigma", "1", "--steps", "100", "--delta", "1e-5")
    rate = ("--sampling-probability", "0.01", "--method", "poisson.pld")
    assert privsweep(*words, *rate, "--explain") == 0
    assert "kind       estimate, not a bound" in privsweep.out
    assert "nothing is proved" in privsweep.out
    assert ends(privsweep.told(*words, *rate, "--explain")) == {"lower": None, "upper": None}
