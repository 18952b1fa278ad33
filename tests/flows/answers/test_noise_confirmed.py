"""A noise multiplier whose epsilon, asked for again with the same options, is printed at most the target."""

import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.answers.ask import Asked, UncoveredError
from flows.answers.sourced import asked_until_tight
from flows.answers.training.noise import confirmed, least_noise, sigma_of, suffices
from privcore import Point, PrivsweepError, Problem, find, find_problem
from privcore.params import SIGMA
from tests.flows.small_store import Command, store_of

GAUSS = find_problem("unamplified-epsilon")
LARGEST = SIGMA.upper


def bracket(problem: Problem, truth: float, above: float, status: str = "ok") -> Asked:
    return Asked(problem=problem, replies=(), lower=0.9 * truth, upper=truth * above, status=status)


@given(
    target=st.floats(-3.0, 1.5).map(lambda x: 10.0**x),
    precision=st.sampled_from([0.1, 1e-2, 1e-3, 1e-4]),
    above=st.floats(1.0, 1.3),
    power=st.floats(0.8, 4.0),
    seed=st.integers(0, 10**6),
)
def test_wide_brackets_raise_the_noise_until_their_upper_end_meets_the_target(
    target: float, precision: float, above: float, power: float, seed: int
) -> None:
    def look(sigma: float, tolerance: float) -> Asked:
        problem = GAUSS.from_fields({"sigma": sigma, "delta": 1e-5})
        return Asked(problem=problem, replies=(), lower=sigma**-power, upper=sigma**-power * (1 + tolerance))

    def again(problem: Problem) -> Asked:
        sigma = float(problem.as_fields()["sigma"])
        uneven = random.Random(f"{seed} {sigma}").uniform(1.0, above)
        return bracket(problem, sigma**-power, uneven)

    least = least_noise(look, target, precision, (SIGMA.lower, SIGMA.upper))
    found = confirmed(least, again, precision=precision, largest=LARGEST)
    assert suffices(again(found.enough.problem), target)
    assert found.sigma >= least.sigma
    assert found.short == least.short
    if found.sigma == least.sigma:
        assert found.least is None
    else:
        assert found.least is not None
        assert sigma_of(found.least) == least.sigma
        # At most twice the raise for the widest bracket, and a step of the search, at most 4 precisions long.
        assert found.sigma <= least.sigma * above ** (2.0 / power + 1.0) * (1.0 + precision) ** 4
    assert found.brackets <= least.brackets + 12


def test_an_upper_end_counts_by_its_decimals() -> None:
    problem = GAUSS.from_fields({"sigma": 4, "delta": 1e-5})
    asked = Asked(problem=problem, replies=(), lower=0.0, upper=0.1)
    assert Decimal(asked.upper) > Decimal("0.1")  # so 0.1 is printed as 0.100001, which is above the target
    assert not suffices(asked, 0.1)
    assert suffices(asked, math.nextafter(0.1, 1.0))
    assert suffices(Asked(problem=problem, replies=(), upper=0.5), 0.5)


def test_contradicting_and_missing_brackets_are_errors() -> None:
    def look(sigma: float, tolerance: float) -> Asked:
        return bracket(GAUSS.from_fields({"sigma": sigma, "delta": 1e-5}), 1.0 / sigma, 1.0)

    least = least_noise(look, 1.0, 1e-3, (SIGMA.lower, SIGMA.upper))
    with pytest.raises(PrivsweepError, match="contradict"):
        confirmed(
            least,
            lambda problem: Asked(problem=problem, replies=(), status="conflict", detail="They contradict."),
            precision=1e-3,
            largest=LARGEST,
        )
    with pytest.raises(UncoveredError, match=r"No sigma up to 1e\+06 .* epsilon=1.0 with default settings"):
        confirmed(
            least,
            lambda problem: Asked(problem=problem, replies=(), status="timeout"),
            precision=1e-3,
            largest=LARGEST,
        )


def drawn_runs(count: int) -> list[Any]:
    """Return options of training runs; every sampling occurs, allocation also with two participations.

    Those with two participations take ten seconds.
    """
    draw = random.Random(20)
    runs = []
    for k in range(count):
        steps = str(draw.choice([10, 60, 500, 3000]))
        epochs = str(draw.choice([1, 3]))
        delta = f"{10 ** draw.uniform(-9, -3):.3g}"
        scheme = {
            0: ("--sampling", "poisson", "--sampling-probability", f"{10 ** draw.uniform(-4, -0.5):.3g}"),
            1: ("--sampling", "none"),
            2: ("--sampling", "allocation"),
            3: ("--sampling", "allocation", "--participations", "2"),
        }[k % 4]
        target = f"{10 ** draw.uniform(-1, 1):.3g}"
        length = () if k % 4 == 1 else ("--steps", steps)
        run = (target, *scheme, *length, "--epochs", epochs, "--delta", delta)
        marks = (pytest.mark.thorough,) if k % 4 == 3 else ()
        runs.append(pytest.param(run, marks=marks, id=" ".join(run)))
    return runs


@pytest.mark.thorough
@pytest.mark.parametrize("run", drawn_runs(8))
def test_epsilon_asked_again_is_printed_at_most_the_target(run: tuple[str, ...], privsweep: Command) -> None:
    target, *options = run
    found = privsweep.told("noise", "--epsilon", target, *options)
    assert found["gap"] == found["sigma"] / found["sigma_short"] - 1.0
    assert found["lower_short"] > float(target)
    assert found["gap"] <= (0.02 if "--participations" not in run else 0.1)
    assert privsweep("epsilon", "--sigma", repr(found["sigma"]), *options) == 0
    printed = privsweep.out.splitlines()[0].rpartition(", ")[2].removesuffix("]")
    assert Decimal(printed) <= Decimal(target)
    assert privsweep("epsilon", "--sigma", repr(found["sigma"]), *options, "--json") == 0
    assert [privsweep.json[end] for end in ("lower", "upper")] == [found[end] for end in ("lower", "upper")]


@pytest.mark.thorough
def test_a_store_with_narrower_brackets_nearby_changes_no_answer(privsweep: Command, tmp_path: Path) -> None:
    kind = find_problem("allocation-epsilon")
    method = find("allocation.certified").from_knobs({"tolerance": 1e-3})
    fields = [{"sigma": round(0.633 + 0.0008 * k, 4), "steps": 1000, "delta": 1e-5} for k in range(12)]
    points = [Point(problem=kind.from_fields(each), method=method) for each in fields]
    store = store_of(tmp_path / "store", points)
    options = ("--sampling", "allocation", "--steps", 1000, "--delta", 1e-5, "--store", store, "--json")
    assert privsweep("noise", "--epsilon", 1, *options) == 0
    sigma = privsweep.json["sigma"]
    assert privsweep("epsilon", "--sigma", sigma, *options) == 0
    stored = privsweep.json
    assert (stored["source"], stored["upper"] <= 1.0) == ("computed", True)
    assert privsweep("epsilon", "--sigma", sigma, *options[:-3], "--json") == 0
    assert [privsweep.json[end] for end in ("lower", "upper")] == [stored[end] for end in ("lower", "upper")]


def test_the_smaller_noise_that_narrower_brackets_allow_is_printed(privsweep: Command) -> None:
    run = ("--sampling", "allocation", "--steps", 1000, "--delta", 1e-5)
    options = ("--epsilon", 1, *run, "--precision", 1e-5)
    assert privsweep("noise", *options) == 0
    text = privsweep.out
    found = privsweep.told("noise", *options)
    assert found["sigma_short"] < found["sigma_least"] < found["sigma"]
    assert f"sigma {found['sigma_least']} suffices by narrower brackets only: epsilon is at most 0.99" in text
    fields = found["fields"] | {"sigma": found["sigma_least"]}
    problem = find_problem("allocation-epsilon").from_fields(fields)
    assert not suffices(asked_until_tight(problem), 1.0)
    narrow = find("allocation.certified").from_knobs({"tolerance": 1e-4})
    assert suffices(asked_until_tight(problem, [narrow]), 1.0)
