"""Bounds by truncated Poisson sampling: void domains, known values, monotonicity, and above the truth."""

import csv
import itertools
import math
from pathlib import Path

import pytest

from privcore import Answer, Method, Point, Problem, Status, evaluate, find, find_problem
from privcore.allocation.problems import AllocationDelta, AllocationEpsilon
from privcore.allocation.published.truncated import bounded
from privcore.numerics.gaussian import gaussian_delta_bounds, gaussian_epsilon_bounds
from tests.privcore.draws import problem

TABLE = Path(__file__).parents[1] / "data" / "allocation.csv"
METHODS = ("allocation.truncated", "allocation.recursive", "allocation.analytic")

each_method = pytest.mark.parametrize("name", METHODS)


def answer(name: str, question: Problem, **knobs: float | str) -> Answer:
    method: Method = find(name).from_knobs(knobs)
    return evaluate(Point(problem=question, method=method))


def epsilon(name: str, sigma: float, steps: int, delta: float, **others: float | int | str) -> float:
    """Return the bound of epsilon."""
    fields = {n: others.pop(n) for n in ("participations", "epochs", "adjacency") if n in others}
    question = problem("allocation-epsilon", sigma=sigma, steps=steps, delta=delta, **fields)
    return answer(name, question, **others).upper


@each_method
@pytest.mark.parametrize("change", [{"steps": 1}, {"steps": 7, "participations": 7}, {"sigma": 0.02}])
def test_where_the_theorem_is_void_the_bound_is_that_without_amplification(
    name: str, change: dict[str, float]
) -> None:
    fields = {"sigma": 1.5, "steps": 50, "participations": 1, "epochs": 3} | change
    sigma = fields["sigma"] / math.sqrt(fields["participations"] * fields["epochs"])
    for adjacency in ("remove", "add", "add-remove"):
        found = answer(name, problem("allocation-epsilon", delta=1e-6, adjacency=adjacency, **fields))
        assert found.upper == gaussian_epsilon_bounds(sigma, 1e-6)[1]
        assert found.detail.count("no amplification, since the theorem gives no bound") == 1 + (
            adjacency == "add-remove"
        )
        found = answer(name, problem("allocation-delta", epsilon=0.7, adjacency=adjacency, **fields))
        assert found.upper == gaussian_delta_bounds(sigma, 0.7)[1]
        assert "no amplification" in found.detail


@each_method
def test_the_ends_of_the_domain_are_answered(name: str) -> None:
    for sigma, (steps, participations) in itertools.product(
        (1e-3, 1e6), ((1, 1), (10**9, 1), (10**9, 10**9))
    ):
        for delta in (1e-300, 0.999):
            found = answer(
                name,
                problem(
                    "allocation-epsilon", sigma=sigma, steps=steps, participations=participations, delta=delta
                ),
            )
            assert (found.status, found.lower) == (Status.OK, 0.0)
        for at in (-100.0, 1e4):
            fields = {"sigma": sigma, "steps": steps, "participations": participations, "epsilon": at}
            found = answer(name, problem("allocation-delta", **fields))
            assert found.status is Status.OK
            assert found.upper <= 1.0


@pytest.mark.parametrize(
    ("sigma", "steps", "delta", "value", "exact"),
    [
        (1.0, 1000, 1e-8, 0.400, 0.2932),
        (2.0, 1000, 1e-10, 0.109, 0.0915),
        (1.0, 30_000, 1e-8, 0.0360, 0.0335),
    ],
)
def test_the_tail_by_doob_and_chernoff_gives_known_values(
    sigma: float, steps: int, delta: float, value: float, exact: float
) -> None:
    upper = epsilon("allocation.truncated", sigma, steps, delta, adjacency="remove", tolerance=0.003)
    assert exact < upper
    assert upper == pytest.approx(value, rel=0.006)


def test_the_authors_splits_give_the_known_values() -> None:
    """Rows computed by other means, up to the tolerance, and the output of the authors' program."""
    with TABLE.open() as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}
    for row, name in (("173", "recursive"), ("175", "recursive"), ("177", "analytic")):
        row_fields = rows[row]
        value = float(row_fields["value"])
        upper = epsilon(
            f"allocation.{name}",
            float(row_fields["sigma"]),
            int(row_fields["t"]),
            float(row_fields["delta_in"]),
            adjacency="remove",
            split="authors",
            tolerance=0.002,
        )
        assert 0.9999 < upper / value < 1.003
    printed = {"remove": 0.621, "add": 0.3418}
    for direction, value in printed.items():
        authors = epsilon("allocation.recursive", 1.0, 1000, 1e-8, adjacency=direction, split="authors")
        assert 0.98 * value < authors < value
    cosh = epsilon("allocation.analytic", 20.0, 10**5, 1e-8, split="authors", range_bound="cosh")
    assert cosh == pytest.approx(0.000755, rel=0.01)


def test_sinh_and_the_optimal_split_are_tighter() -> None:
    def analytic(range_bound: str, split: str) -> float:
        return epsilon("allocation.analytic", 20.0, 10**5, 1e-8, range_bound=range_bound, split=split)

    assert analytic("sinh", "authors") < analytic("cosh", "authors")
    assert 0.000551 < analytic("sinh", "optimal") < 0.8 * analytic("sinh", "authors")
    for sigma, steps, delta in ((1.0, 1000, 1e-8), (2.0, 1000, 1e-10), (0.5, 10_000, 1e-6)):
        halves = epsilon("allocation.recursive", sigma, steps, delta, split="authors")
        assert epsilon("allocation.recursive", sigma, steps, delta) < halves


@each_method
def test_blocks_compose_as_epochs_do(name: str) -> None:
    """Only floor(t / k) and k E matter; the remainder of t is not used."""
    base = epsilon(name, 8.0, 500, 1e-7, epochs=20)
    assert epsilon(name, 8.0, 5009, 1e-7, participations=10, epochs=2) == base
    assert epsilon(name, 8.0, 500, 1e-7) < 0.5 * base


@pytest.mark.sampled(2)
@each_method
def test_epsilon_falls_in_delta_noise_and_steps(name: str) -> None:
    for changes in (
        [{"delta": delta} for delta in (1e-12, 1e-9, 1e-6, 1e-3)],
        [{"sigma": sigma} for sigma in (6.0, 8.0, 12.0, 30.0)],
        [{"steps": steps} for steps in (600, 2000, 10_000, 10**6)],
    ):
        fields = {"sigma": 10.0, "steps": 2000, "delta": 1e-8}
        uppers = [
            answer(name, problem("allocation-epsilon", **(fields | change))).upper for change in changes
        ]
        assert uppers == sorted(uppers, reverse=True)


@pytest.mark.sampled(3)
@each_method
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_bound_of_delta_inverts_that_of_epsilon(name: str, direction: str) -> None:
    for sigma, steps, participations, delta in ((12.0, 1000, 1, 1e-9), (6.0, 3000, 2, 1e-5)):
        fields = {"sigma": sigma, "steps": steps, "participations": participations, "adjacency": direction}
        at = answer(name, problem("allocation-epsilon", delta=delta, **fields)).upper
        found = answer(name, problem("allocation-delta", epsilon=at, **fields))
        assert "probability" in found.detail
        assert 0.5 * delta < found.upper < 1.1 * delta


@pytest.mark.sampled(1)
@each_method
def test_both_directions_together_are_the_larger_one(name: str) -> None:
    for kind, threshold in (("allocation-epsilon", {"delta": 1e-6}), ("allocation-delta", {"epsilon": 0.1})):
        remove, add, both = (
            answer(name, problem(kind, sigma=5.0, steps=300, adjacency=adjacency, **threshold)).upper
            for adjacency in ("remove", "add", "add-remove")
        )
        assert both == max(remove, add)


@pytest.mark.sampled(1)
@each_method
def test_the_truth_lies_below(name: str) -> None:
    """The lower ends of the certified enclosures are proved by other means."""
    settings = itertools.product((0.5, 5.0), ((20, 1, 1), (300, 1, 1), (90, 4, 2)), ("remove", "add"))
    for sigma, (steps, participations, epochs), adjacency in settings:
        fields = {
            "sigma": sigma,
            "steps": steps,
            "participations": participations,
            "epochs": epochs,
            "adjacency": adjacency,
        }
        for kind, threshold in (
            ("allocation-epsilon", {"delta": 1e-3}),
            ("allocation-epsilon", {"delta": 1e-7}),
            ("allocation-delta", {"epsilon": 0.05}),
        ):
            question = problem(kind, **fields, **threshold)
            truth = answer("allocation.certified", question, tolerance=0.3)
            assert truth.lower <= answer(name, question, tolerance=0.3).upper, question


def test_the_correction_is_a_part_of_delta() -> None:
    """A rate that needs a correction of 1/1000 gives no smaller delta, and no epsilon for a smaller one."""
    rate = lambda _direction, budget: 0.02 if budget >= 1e-3 else None

    def delta_at(epsilon: float) -> Answer:
        asked = AllocationDelta.from_fields(
            {"sigma": 1.0, "steps": 10, "epsilon": epsilon, "adjacency": "remove"}
        )
        return bounded(asked, rate, 0.1)

    def epsilon_at(delta: float) -> Answer:
        asked = AllocationEpsilon.from_fields(
            {"sigma": 1.0, "steps": 10, "delta": delta, "adjacency": "remove"}
        )
        return bounded(asked, rate, 0.1)

    assert "correction" in delta_at(1.0).detail
    assert 1e-3 <= delta_at(1.0).upper < 0.01
    assert "no amplification" in epsilon_at(1e-3).detail
    assert "Poisson" in epsilon_at(2e-3).detail


def test_large_noise_is_bounded_by_twice_the_participations() -> None:
    """Corollary 4.5 at its condition: sigma above 8 sqrt(ln(t / delta')) = 37."""
    method = find("allocation.corollary")()
    fields = {"steps": 1000, "delta": 1e-6}
    least = 8.0 * math.sqrt(math.log(2e9))
    assert method.applies(problem("allocation-epsilon", sigma=1.0001 * least, **fields)) is None
    large = problem("allocation-epsilon", sigma=60.0, **fields)
    poisson = problem("poisson-epsilon", sigma=60.0, sampling_probability=0.002, **fields)
    found = method.answer(large, 0)
    assert found.upper == pytest.approx(find("poisson.certified")().answer(poisson, 0).upper, rel=2e-2)
    assert find("allocation.certified")().answer(large, 0).upper < found.upper
    for refused in (
        {"sigma": least},
        {"sigma": 60.0, "epochs": 2},
        {"sigma": 60.0, "participations": 501},
    ):
        assert method.applies(problem("allocation-epsilon", **fields, **refused)) is not None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"steps": 299, "participations": 100, "delta": 1e-10}, "blocks of 2 steps"),
        ({"steps": 2, "epsilon": 10.0}, "ln floor"),
    ],
)
def test_the_corollary_is_refused_where_theorem_4_1_does_not_give_it(
    fields: dict[str, float], why: str
) -> None:
    problem = "allocation-epsilon" if "delta" in fields else "allocation-delta"
    reason = find("allocation.corollary")().applies(
        find_problem(problem).from_fields({"sigma": 1e4, **fields})
    )
    assert reason is not None
    assert why in reason
