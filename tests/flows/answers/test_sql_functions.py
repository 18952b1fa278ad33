"""The SQL function `certified_epsilon`: computed brackets in queries, from a store if it has them."""

import random
from pathlib import Path
from typing import Any

import pytest

from flows.answers import held, sourced
from flows.answers.ask import ask
from flows.answers.held import ARGUMENTS, CertifiedEpsilon, question
from flows.answers.parse import LOADERS, SAMPLING
from flows.answers.sourced import Sourced
from privcore import Answer, DomainError, Problem, find_problem
from storage import LimitError, QueryError, open_store
from tests.flows.small_store import Command
from tests.storage.made_up import epsilon, put, row

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path / "store", row(epsilon(), Answer.enclosure(4.37717, 4.37718)))
    return tmp_path / "store"


def asked(root: Path, query: str, **options: Any) -> list[dict[str, Any]]:
    with open_store(root) as store:
        certified = CertifiedEpsilon(store, **options)
        rows: list[dict[str, Any]] = store.sql(query, functions=[certified.function]).to_pylist()
        return rows


def test_every_row_gets_its_own_bracket(root: Path) -> None:
    rng = random.Random(24)
    drawn = [(round(rng.uniform(0.6, 3.0), 3), rng.randint(10, 1000), rng.randint(1, 20)) for _ in range(6)]
    values = ", ".join(map(str, drawn))
    rows = asked(
        root,
        f"from (values {values}) as t(sigma, steps, epochs) select sigma, steps, epochs, "
        "certified_epsilon(sampling := 'allocation', sigma := sigma, steps := steps, epochs := epochs, "
        "delta := 1e-5) as e",
    )
    kind = find_problem("allocation-epsilon")
    for sigma, steps, epochs in drawn:
        (found,) = (each["e"] for each in rows if float(each["sigma"]) == sigma and each["steps"] == steps)
        fields = {"sigma": sigma, "steps": steps, "epochs": epochs, "delta": 1e-5}
        true = ask(kind.from_fields(fields), limit_seconds=1.0)
        assert found["lower"] <= true.upper
        assert found["upper"] >= true.lower
        assert found["upper"] <= 1.02 * found["lower"]
        assert (found["method"], found["source"]) == ("allocation.certified", "computed")


def test_a_stored_bracket_is_used_and_a_question_is_computed_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Problem] = []

    def counted(problem: Problem) -> Sourced:
        computed.append(problem)
        return sourced.computed(problem)

    held._computed.cache_clear()
    monkeypatch.setattr(held, "computed", counted)
    query = "select certified_epsilon(sampling := 'none', sigma := s, delta := 1e-5).source as source from "
    assert asked(root, f"{query} (values (1), (2), (2), (2)) as t(s)") == [
        {"source": source} for source in ("store", "computed", "computed", "computed")
    ]
    assert asked(root, f"{query} (values (2)) as t(s)") == [{"source": "computed"}]
    assert [each.as_fields()["sigma"] for each in computed] == [2.0]


def test_examples_and_batch_size_replace_steps_and_rate() -> None:
    sizes = {"sigma": 1.1, "examples": 60_000.0, "batch_size": 256.0, "epochs": 10.0, "delta": 1e-5}
    assert question({**sizes, "sampling": "allocation"}).as_fields()["steps"] == 234
    poisson = question({**sizes, "sampling": "poisson", "adjacency": None}).as_fields()
    assert (poisson["steps"], poisson["sampling_probability"]) == (235, 256 / 60_000)


def test_every_field_of_every_sampler_is_an_argument() -> None:
    fields = {name for problem in SAMPLING.values() for name in find_problem(problem).parameters}
    assert fields <= ARGUMENTS.keys()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("sigma := -1, steps := 4", "Expected sigma in [0.001, 1000000], got sigma=-1.0."),
        ("sigma := 1", "Expected steps for allocation-epsilon."),
        ("sigma := 1, steps := 2.5", "Expected steps in {1, ..., 1000000000}, got steps=2.5."),
    ],
)
def test_a_wrong_argument_is_one_sentence(root: Path, arguments: str, sentence: str) -> None:
    with pytest.raises(QueryError) as caught:
        asked(root, f"select certified_epsilon(sampling := 'allocation', {arguments}, delta := 1e-5)")
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("argument", ["", "sampling := 'dice', ", "sampling := null, "])
def test_no_sampler_is_assumed(root: Path, argument: str) -> None:
    with pytest.raises(QueryError) as caught:
        asked(root, f"select certified_epsilon({argument}sigma := 1, steps := 100, delta := 1e-5)")
    assert str(caught.value).startswith(
        "Expected sampling, since epsilon depends on the loader: 'shuffling' ("
    )
    assert all(f"'{word}' ({code})" in str(caught.value) for word, code in LOADERS.items())


def test_a_null_is_an_argument_that_was_left_out(root: Path) -> None:
    query = "select certified_epsilon(sampling := 'none', sigma := 1, delta := 1e-5, epochs := null)"
    (one,) = asked(root, query)
    assert next(iter(one.values()))["source"] == "store"
    with pytest.raises(DomainError):
        question(dict.fromkeys(ARGUMENTS))


def test_a_query_ends_in_time_although_every_row_computes(root: Path) -> None:
    query = (
        "select sum(certified_epsilon(sampling := 'none', sigma := 1 + x / 1e6, delta := 1e-5).upper) "
        "from range(1000000) as t(x)"
    )
    with open_store(root) as store, pytest.raises((LimitError, QueryError)) as caught:
        store.sql(query, limit_seconds=0.5, functions=[CertifiedEpsilon(store, 0.5).function])
    assert "took longer than 0.5 s" in str(caught.value)


def test_kept_answers_are_in_the_store(privsweep: Command, root: Path) -> None:
    query = "select certified_epsilon(sampling := 'none', sigma := 2, delta := 1e-5).source as source"
    assert privsweep.told("sql", query, "--store", root, "--keep") == [{"source": "computed"}]
    assert privsweep.told("sql", query, "--store", root) == [{"source": "store"}]
    assert privsweep("verify", "--store", root) == 0


def test_a_function_is_not_left_behind(root: Path) -> None:
    with open_store(root) as store:
        store.sql("select 1", functions=[CertifiedEpsilon(store).function])
        with pytest.raises(QueryError, match="certified_epsilon"):
            store.sql("select certified_epsilon(sigma := 1)")
