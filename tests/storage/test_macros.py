import itertools
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privcore import PROBLEMS, Answer, Problem, find, find_problem
from privcore.training import TrainingRun
from storage import QueryError, Store, open_store
from storage.sql.macros import literal
from storage.sql.views import view_name
from tests.storage.made_up import Claims, epsilon, put, row
from tests.suites import some

Allocation = find_problem("allocation-epsilon")
POINT = "sigma := 1.5, steps := 50, delta := 2e-6"


def allocation(**fields: Any) -> Problem:
    return Allocation.from_fields({"sigma": 1.0, "steps": 10, "delta": 1e-6, **fields})


def poisson(**fields: Any) -> Problem:
    given = {"sigma": 1.0, "steps": 10, "sampling_probability": 0.125, "delta": 1e-5, **fields}
    return find_problem("poisson-epsilon").from_fields(given)


def arguments(problem: Problem) -> str:
    return ", ".join(f"{name} := {literal(value)}" for name, value in problem.as_fields().items())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Epsilons 100 / (sigma steps), give or take a tenth, and some without amplification."""
    root = tmp_path_factory.mktemp("macros") / "store"
    certified = find("allocation.certified")()
    grid = itertools.product((1.0, 2.0, 4.0), (10, 100), (1e-6, 1e-5), (1, 2))
    put(
        root,
        [
            row(
                allocation(sigma=sigma, steps=steps, delta=delta, epochs=epochs),
                Answer.enclosure(90 * epochs / sigma / steps, 110 * epochs / sigma / steps),
                method=certified,
            )
            for sigma, steps, delta, epochs in grid
        ],
    )
    put(
        root,
        [row(epsilon(sigma=s, delta=1e-5, steps=10), Answer.enclosure(1 / s, 2 / s)) for s in (1.0, 2.0)],
    )
    put(root, row(poisson(), Answer.enclosure(8.0, 12.0), method=find("poisson.certified")()))
    with open_store(root) as opened:
        yield opened


@pytest.mark.parametrize(
    "question",
    [
        allocation(sigma=2.0, steps=100),
        allocation(sigma=1.5, steps=50, delta=2e-6),
        allocation(sigma=0.5, steps=50),
        allocation(sigma=8.0, steps=1000, delta=1e-4, epochs=3),
        allocation(adjacency="add"),
        epsilon(sigma=1.5, steps=10),
        epsilon(sigma=1.5, steps=9),
        poisson(steps=2, epochs=5),
        poisson(steps=3, epochs=3, sampling_probability=0.1),
    ],
    ids=[
        "stored",
        "between",
        "less-noise",
        "beyond",
        "unknown-word",
        "other-problem",
        "unused",
        "product",
        "fewer",
    ],
)
def test_a_macro_says_what_a_lookup_says(store: Store, question: Problem) -> None:
    (said,) = store.sql(f"from {view_name(question.name)}_at({arguments(question)})").to_pylist()
    found = store.lookup(question)
    assert said.pop("problem") == question.name
    if found is None:
        assert said["lower"] == 0.0
        assert said["upper"] == math.inf
        assert said["upper_from"] is said["lower_from"] is said["upper_method"] is None
    else:
        assert said.pop("imported") == list(found.tables)
        assert said == {name: getattr(found, name) for name in said}


@pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.name)
def test_every_problem_has_a_macro(store: Store, kind: type[Problem]) -> None:
    typical = {name: parameter.typical_values()[0] for name, parameter in kind.parameters.items()}
    given = ", ".join(f"{name} := {literal(value)}" for name, value in typical.items())
    (said,) = store.sql(f"from {view_name(kind.name)}_at({given})").to_pylist()
    assert said["lower"] <= said["upper"]


def test_a_macro_answers_for_every_row_of_a_table(store: Store) -> None:
    query = """
        select s.sigma, e.upper from (values (1.0::double), (1.5), (2.5)) as s(sigma),
        epsilon_at(sigma := s.sigma, steps := 50, delta := 1e-5) as e order by s.sigma
    """
    assert [tuple(r.values()) for r in store.sql(query).to_pylist()] == [(1.0, 11.0), (1.5, 11.0), (2.5, 5.5)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "sigma := 'nan'::double, steps := 50, delta := 1e-5",
            "Expected sigma in [0.001, 1000000], got nan.",
        ),
        ("steps := 50, delta := 1e-5", "Expected sigma in [0.001, 1000000], got nothing."),
        ("sigma := 1, steps := 2.5, delta := 1e-5", "Expected steps in {1, ..., 1000000000}, got 2.5."),
        ("sigma := 1, steps := 2, delta := 1", "Expected delta in (0, 1), got 1."),
        (
            f"{POINT}, adjacency := 'both'",
            "Expected adjacency in {add-remove, remove, add, zero-out}, got both.",
        ),
    ],
)
def test_a_value_outside_its_domain_is_refused(store: Store, arguments: str, sentence: str) -> None:
    with pytest.raises(QueryError) as caught:
        store.sql(f"from epsilon_at({arguments})")
    assert str(caught.value) == f"Invalid Input Error: {sentence}"


@pytest.mark.thorough
def test_a_name_of_the_users_is_never_taken_for_one_of_ours(store: Store) -> None:
    aliases = ("s", "b", "asked", "given", "raw", "found", "low")
    columns = ("sigma", "steps", "upper", "bound")
    for alias, column, given in some(list(itertools.product(aliases, columns, ("{c}", "{a}.{c}"))), 8):
        query = f"""
            select e.lower, e.upper from (values (1.5::double)) as {alias}({column}),
            epsilon_at(sigma := {given.format(a=alias, c=column)}, steps := 50, delta := 2e-6) as e
        """
        assert store.sql(query).to_pylist() == [{"lower": 0.45, "upper": 11.0}], query
    query = (
        "from (values (5.4999)) as b(upper), noise_for(epsilon := b.upper, steps := 50, delta := 2e-6) as n"
    )
    assert store.sql(f"select n.sigma {query}").to_pylist() == [{"sigma": 4.0}]
    query = (
        "from (values (1)) as s(upper), compare(sigma := 1, steps := 10, delta := 1e-5, epochs := upper) as c"
    )
    assert "shuffling-epsilon" in store.sql(f"select c.problem {query}")["problem"].to_pylist()
    with pytest.raises(QueryError, match='"sigma" was not found'):
        store.sql("from epsilon_at(sigma := sigma, steps := 50, delta := 2e-6)")


def test_a_table_of_questions_is_answered_as_each_of_them_is_looked_up(store: Store) -> None:
    random_ = random.Random(7)
    questions = [
        allocation(
            sigma=random_.choice((0.7, 1.0, 3.0, 4.0)) * random_.choice((1.0, 1.1)),
            steps=random_.choice((9, 10, 55, 100, 101)),
            delta=random_.choice((1e-7, 1e-6, 3e-6, 1e-5, 0.1)),
            epochs=random_.randint(1, 3),
        )
        for _ in range(60)
    ]
    values = ", ".join(
        f"({k}, {q.sigma}, {q.steps}, {q.delta}::double, {q.epochs})"  # type: ignore[attr-defined]
        for k, q in enumerate(questions)
    )
    query = f"""
        select e.lower, e.upper from (values {values}) as q(k, sigma, steps, delta, epochs),
        epsilon_at(sigma := sigma, steps := steps, delta := delta, epochs := epochs) as e order by k
    """
    looked_up = [store.lookup(question) for question in questions]
    expected = [(f.lower, f.upper) if f else (0.0, math.inf) for f in looked_up]
    assert len(set(expected)) > 5
    assert [tuple(answer.values()) for answer in store.sql(query).to_pylist()] == expected


def test_a_question_is_checked_where_nothing_is_stored_that_could_answer_it(store: Store) -> None:
    for question, name in [
        ("poisson_delta_at()", "sigma"),
        (
            "poisson_delta_noise(epsilon := 1, steps := 1, sampling_probability := 1)",
            "delta",
        ),
        ("epsilon_at(sigma := 1e6, steps := 1, delta := 7)", "delta"),
        ("epsilon_at(sigma := 0.001, steps := 1, delta := 1e-5, adjacency := 'both')", "adjacency"),
        ("epsilon_at(sigma := true, steps := 1, delta := 1e-5)", "sigma"),
        ("epsilon_at(sigma := 'one', steps := 1, delta := 1e-5)", "sigma"),
    ]:
        with pytest.raises(QueryError, match=f"^Invalid Input Error: Expected {name} in "):
            store.sql(f"from {question}")


def test_noise_for_a_target_is_the_smallest_that_is_proved_to_meet_it(store: Store) -> None:
    for target, sigma in [(5.5, 2.0), (5.4999, 4.0), (11.0, 1.0), (1e9, 1.0)]:
        (said,) = store.sql(f"from noise_for(epsilon := {target!r}, steps := 50, delta := 2e-6)").to_pylist()
        assert (said["sigma"], said["upper_from"]["steps"], said["upper_from"]["delta"]) == (sigma, 10, 1e-6)
        assert said["upper"] <= target
    assert store.sql("from noise_for(epsilon := 0.1, steps := 50, delta := 2e-6)").num_rows == 0
    with pytest.raises(QueryError, match="Expected epsilon in"):
        store.sql("from noise_for(epsilon := 'nan'::double, steps := 50, delta := 2e-6)")


def test_compare_puts_schemes_side_by_side(store: Store) -> None:
    query = "select problem, lower, upper from compare(sigma := 1, steps := 10, delta := 1e-5)"
    assert [tuple(r.values()) for r in store.sql(query).to_pylist()] == [
        ("allocation-epsilon", 9.0, 11.0),
        ("poisson-epsilon", 0.0, 12.0),
        ("shuffling-epsilon", 0.0, math.inf),
        ("unamplified-epsilon", 1.0, 2.0),
    ]
    query = "select problem from compare(sigma := 1, steps := 10, delta := 1e-5, participations := 2)"
    assert "shuffling-epsilon" not in store.sql(query)["problem"].to_pylist()


def test_compare_asks_shuffling_with_new_orders_and_for_zero_out(root: Path) -> None:
    kind, largest = find_problem("shuffling-epsilon"), find("shuffling.largest")()
    fields: dict[str, Any] = {"sigma": 1.0, "steps": 10, "delta": 1e-5}
    orders: list[dict[str, Any]] = [
        {},
        {"epochs": 2, "redraw": "each-epoch"},
        {"epochs": 2, "redraw": "once"},
    ]
    problems = [kind.from_fields(fields | order) for order in orders]
    put(root, [row(asked, Answer.at_least(1.0 + i), method=largest) for i, asked in enumerate(problems)])
    with open_store(root) as store:
        for epochs, low in ((1, 1.0), (2, 2.0)):
            asked = f"sigma := 1, steps := 10, delta := 1e-5, epochs := {epochs}"
            found = store.sql(f"select problem, lower from compare({asked})").to_pylist()
            assert {"problem": "shuffling-epsilon", "lower": low} in found


def test_a_macro_does_not_hide_a_contradiction(root: Path) -> None:
    put(
        root,
        [row(epsilon(), Answer.enclosure(1, 2)), row(epsilon(), Answer.enclosure(3, 4), method=Claims())],
    )
    with open_store(root) as store:
        for question in ("at(sigma := 1, delta := 1e-5)", "noise(epsilon := 2, delta := 1e-5)"):
            for column in ("*", "upper", "upper_method", "problem"):
                with pytest.raises(QueryError, match="contradicts itself about unamplified-eps"):
                    store.sql(f"select {column} from unamplified_epsilon_{question}")
        assert store.sql("from unamplified_epsilon_noise(epsilon := 0.5, delta := 1e-5)").num_rows == 0


def test_compare_finds_public_steps_however_many_there_are(root: Path) -> None:
    put(
        root, [row(epsilon(sigma=1.0, steps=1)), row(epsilon(sigma=2.0, steps=7), Answer.enclosure(0.5, 1.0))]
    )
    query = "select lower, upper from compare(sigma := 1.5, steps := 1000, delta := 1e-5) where problem = "
    with open_store(root) as store:
        assert store.sql(f"{query} 'unamplified-epsilon'").to_pylist() == [{"lower": 0.5, "upper": 2.0}]
        question = "unamplified_epsilon_at(sigma := 1.5, steps := 1000, delta := 1e-5)"
        assert store.sql(f"select lower, upper from {question}").to_pylist() == [{"lower": 0.5, "upper": 2.0}]


SIZES = "examples := 1000, batch_size := 300"


def test_examples_and_batch_size_replace_steps_and_sampling_probability(root: Path) -> None:
    run = TrainingRun(examples=1000, batch_size=300, participations=2)
    for k in (1, 2):
        asked = allocation(steps=3, delta=1e-5, participations=k)
        put(root, row(asked, Answer.enclosure(k, 1.0 + k), method=find("allocation.certified")()))
    certified = find("poisson.certified")()
    rates = {1: TrainingRun(examples=1000, batch_size=300).rate, 2: run.rate}
    for k, rate in rates.items():
        asked = poisson(steps=4, sampling_probability=rate)
        put(root, row(asked, Answer.enclosure(3.0 + k, 4.0 + k), method=certified))
    with open_store(root) as store:
        for name, both in (("epsilon_at", (1.0, 2.0)), ("poisson_epsilon_at", (4.0, 5.0))):
            query = f"select lower, upper from {name}(sigma := 1, delta := 1e-5, {SIZES})"
            assert [tuple(each.values()) for each in store.sql(query).to_pylist()] == [both]
        noise = f"select sigma from noise_for(epsilon := 2, delta := 1e-5, {SIZES})"
        assert store.sql(noise).to_pylist() == [{"sigma": 1.0}]
        for k, ends in ((1, [(1.0, 2.0), (4.0, 5.0)]), (2, [(2.0, 3.0), (5.0, 6.0)])):
            query = f"from compare(sigma := 1, delta := 1e-5, participations := {k}, {SIZES})"
            found = {each["problem"]: (each["lower"], each["upper"]) for each in store.sql(query).to_pylist()}
            assert [found["allocation-epsilon"], found["poisson-epsilon"]] == ends


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("examples := 1000", "batch_size in {1, ..., examples}, got nothing"),
        ("batch_size := 10", "batch_size in {1, ..., examples}, got 10"),
        ("examples := 9, batch_size := 10", "batch_size in {1, ..., examples}, got 10"),
        ("examples := 9, batch_size := 0", "batch_size in {1, ..., examples}, got 0"),
        ("examples := 9.5, batch_size := 2", "batch_size in {1, ..., examples}, got 2"),
        ("examples := 'inf'::double, batch_size := 2", "batch_size in {1, ..., examples}, got 2"),
        ("examples := 'x', batch_size := 2", "batch_size in {1, ..., examples}, got 2"),
        (f"{SIZES}, steps := 3", "steps or batch_size, got both"),
    ],
)
@pytest.mark.parametrize("macro", ["epsilon_at", "poisson_epsilon_at"])
def test_sizes_that_make_no_sense_are_refused_in_sql(
    store: Store, macro: str, arguments: str, sentence: str
) -> None:
    with pytest.raises(QueryError) as caught:
        store.sql(f"select upper from {macro}(sigma := 1, delta := 1e-5, {arguments})")
    assert str(caught.value) == f"Invalid Input Error: Expected {sentence}."


def test_compare_refuses_more_participations_than_there_are_batches(store: Store) -> None:
    asked = "sigma := 1, delta := 1e-5, examples := 100, batch_size := 30"
    with pytest.raises(QueryError, match="Expected sampling_probability in"):
        store.sql(f"from compare({asked}, participations := 4)")
    quoted = "sigma := 1, delta := 1e-5, examples := '100', batch_size := '30'"
    assert store.sql(f"from compare({quoted})").equals(store.sql(f"from compare({asked})"))
    assert store.sql("select rate_at_least(4.0, 3.0) is null as nothing").to_pylist() == [{"nothing": True}]


def test_steps_and_rates_in_sql_are_those_of_python(store: Store) -> None:
    """The steps are exact, and the rate is the smallest double that is not below b / n."""
    numbers = random.Random(3)
    pairs = []
    for _ in range(2000):
        n = numbers.randint(1, 10 ** numbers.randint(1, 15))
        pairs.append((n, numbers.randint(1, n)))
    values = ", ".join(f"({n}, {b})" for n, b in pairs)
    query = f"""
        select n, b, rate_at_least(as_double(b), as_double(n)) as rate,
               floor(as_double(n) / as_double(b)) as down, ceil(as_double(n) / as_double(b)) as up
        from (values {values}) as sizes(n, b)
    """
    for found in store.sql(query).to_pylist():
        n, b = found["n"], found["b"]
        assert found["rate"] == TrainingRun(examples=n, batch_size=b).rate, (n, b)
        assert (found["down"], found["up"]) == (n // b, -(-n // b)), (n, b)
