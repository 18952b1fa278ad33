"""Differential privacy: the sharp advantage against linear programs, 40 digits and the paper's bounds."""

import csv
import math
import re
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import linprog

from privcore import Answer, Point, evaluate, find
from privcore.membership.learner.sharp import add_remove_advantage, published_bound, substitution_advantage
from tests.privcore.draws import problem

ORACLE = Path(__file__).parents[2] / "data" / "membership.csv"


def ask(method: str = "membership.sharp", **fields: Any) -> Answer:
    return evaluate(Point(problem=problem("membership-private-advantage", **fields), method=find(method)()))


class Arcs:
    """Linear program over learners of one record of K equally likely values that release a set of values.

    By symmetry, the probability of a set of j values depends only on whether the record is in the set. The
    variables are, for every j, the probability of a set that contains the record, of a set that does not, and
    of a set if there is no record. The attack classifies records in the set as members, or those outside as
    fresh.
    """

    def __init__(self, values: int, epsilon: float) -> None:
        self.k, self.e = values, math.exp(epsilon)
        self.sizes = np.arange(values + 1)
        self.bounds: list[np.ndarray[Any, Any]] = []
        self.limits: list[float] = []
        self.equal: list[np.ndarray[Any, Any]] = []

    def row(self, **parts: Any) -> np.ndarray[Any, Any]:
        """Return coefficients of inside, outside, without and excess, zero where they are not given."""
        names = ("inside", "outside", "without", "excess", "lack")
        zero = np.zeros(self.sizes.size)
        return np.concatenate([np.broadcast_to(parts.get(name, zero), zero.shape) for name in names])

    def require(self, **parts: Any) -> None:
        """Require that this combination of a size's variables is at most 0, for every size."""
        for i in range(self.sizes.size):
            only = np.arange(self.sizes.size) == i
            self.bounds.append(self.row(**{name: part * only for name, part in parts.items()}))
            self.limits.append(0.0)

    def largest(self, odds: float) -> float:
        share = self.sizes / self.k
        self.equal.append(self.row(inside=1.0, outside=1.0))
        gain = (
            self.row(inside=1.0 - odds * share, outside=-odds * share)
            if odds >= 1.0
            else self.row(inside=share - 1.0 / odds, outside=share)
        )
        found = linprog(
            -gain,
            A_ub=np.array(self.bounds),
            b_ub=self.limits,
            A_eq=np.array(self.equal),
            b_eq=np.ones(len(self.equal)),
            bounds=(0.0, None),
        )
        assert found.status == 0
        return float(-found.fun)

    def substitution(self, delta: float, odds: float) -> float:
        inside, outside = (self.k - self.sizes) / (self.k - 1.0), self.sizes / (self.k - 1.0)
        self.require(inside=inside, outside=-self.e * outside, excess=-1.0)
        self.require(inside=-self.e * inside, outside=outside, lack=-1.0)
        self.bounds.append(self.row(excess=1.0, lack=1.0))
        self.limits.append(delta)
        return self.largest(odds)

    def add_remove(self, odds: float) -> float:
        share = self.sizes / self.k
        for name, part in (("inside", share), ("outside", 1.0 - share)):
            self.require(**{name: 1.0, "without": -self.e * part})
            self.require(**{name: -self.e, "without": part})
        self.equal.append(self.row(without=1.0))
        return self.largest(odds)


def test_the_oracle_agrees() -> None:
    with ORACLE.open(newline="") as file:
        found = [row for row in csv.DictReader(file) if "DP" in row["quantity"]]
    assert len(found) >= 6
    for row in found:
        text = row["quantity"]
        epsilon, delta, odds = (
            float(re.search(rf"{name}=([0-9.]+)", text)[1])  # type: ignore[index]
            for name in ("eps", "delta", "gamma")
        )
        answer = ask(claimed_epsilon=epsilon, claimed_delta=delta, odds=odds)
        exact = row["source"] == "closed" and epsilon == 1.0
        assert answer.upper == pytest.approx(float(row["value"]), rel=1e-10 if exact else 2e-3), row
        assert answer.upper >= float(row["value"]) - 1e-5 * (not exact), row


@pytest.mark.parametrize("odds", [1.0, 0.5, 1.7, 3.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (1.5, 0.0), (1.0, 0.05), (3.0, 0.01), (0.0, 0.1)])
def test_a_linear_programme_approaches_the_supremum_under_substitution(
    epsilon: float, delta: float, odds: float
) -> None:
    answer = ask(claimed_epsilon=epsilon, claimed_delta=delta, odds=odds)
    few, more, many = (Arcs(values, epsilon).substitution(delta, odds) for values in (3, 100, 400))
    assert few <= more + 1e-9
    assert max(more, many) <= answer.upper + 1e-9
    assert (4.0 * many - more) / 3.0 == pytest.approx(answer.lower, abs=2e-4)


@pytest.mark.parametrize("odds", [1.0, 0.2, 0.5, 0.9, 1.1, 1.7, 3.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.5, 3.0])
def test_a_linear_programme_approaches_the_supremum_under_adding_and_removing(
    epsilon: float, odds: float
) -> None:
    answer = ask(claimed_epsilon=epsilon, odds=odds, neighbours="add-remove")
    more, many = (Arcs(values, epsilon).add_remove(odds) for values in (100, 400))
    assert max(more, many) <= answer.upper + 1e-9
    assert (4.0 * many - more) / 3.0 == pytest.approx(answer.lower, abs=1e-3)


def test_no_random_private_learner_exceeds_the_supremum() -> None:
    """Random distributions of one record, and random releases whose likelihood ratios respect epsilon."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        law = rng.dirichlet(np.full(4, 1.0))[:, None]
        release = rng.dirichlet(np.full(5, 0.3)) * np.exp(rng.uniform(0.0, 3.0) * rng.integers(0, 2, (4, 5)))
        release /= release.sum(axis=1, keepdims=True)
        epsilon = float(np.log(release.max(axis=0) / release.min(axis=0)).max())
        without = (law * release).sum(axis=0)
        for odds in (0.3, 0.8, 1.0, 1.5, 4.0):
            gain = release - odds * without if odds >= 1.0 else without - release / odds
            advantage = float((law * np.maximum(gain, 0.0)).sum())
            assert advantage <= substitution_advantage(epsilon, odds) + 1e-12
            added = float(np.abs(np.log(release / without)).max())
            assert advantage <= add_remove_advantage(added, odds) + 1e-12


def test_three_values_attain_the_supremum_exactly() -> None:
    """At epsilon 2 ln 2 the best arc is a third of the circle; at ln 2 for adding and removing."""
    assert Arcs(3, 2.0 * math.log(2.0)).substitution(0.0, 1.0) == pytest.approx(1.0 / 3.0, abs=1e-9)
    assert ask(claimed_epsilon=2.0 * math.log(2.0)).upper == pytest.approx(1.0 / 3.0, abs=1e-14)
    assert Arcs(3, math.log(2.0)).add_remove(1.0) == pytest.approx(1.0 / 3.0, abs=1e-9)
    assert ask(claimed_epsilon=math.log(2.0), neighbours="add-remove").upper == pytest.approx(1.0 / 3.0)


def test_the_published_supremum_is_not_attained() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        sharp, published = (
            ask(method, claimed_epsilon=epsilon).upper
            for method in ("membership.sharp", "membership.published")
        )
        assert sharp == pytest.approx(math.tanh(epsilon / 4.0))
        assert published <= math.tanh(epsilon / 2.0) * (1.0 + 1e-12)
        assert Arcs(60, epsilon).substitution(0.0, 1.0) < 0.92 * math.tanh(epsilon / 2.0)


def test_the_published_equation_exceeds_1_where_it_would_be_of_use() -> None:
    assert math.expm1(0.7) > 1.0
    assert published_bound(0.7, 0.0, 1.0) == math.tanh(0.35)


def test_the_published_bounds_have_the_factor_of_the_odds_above_1() -> None:
    assert published_bound(0.3, 0.01, 2.0) == pytest.approx(2.0 * (0.01 + 0.99 * math.tanh(0.15)))
    assert published_bound(0.01, 0.3, 2.0) == pytest.approx(2.0 * (0.3 + 0.7 * math.tanh(0.005)))
    assert published_bound(0.5, 0.01, 0.7) == pytest.approx(0.01 + math.exp(0.5) - 1.0 / 0.7)


def test_the_published_bounds_are_never_below_the_supremum() -> None:
    for epsilon in (0.0, 1e-6, 0.3, 1.0, 5.0, 700.0):
        for delta in (0.0, 1e-6, 0.3, 1.0):
            for odds in (1e-3, 0.5, 1.0, 2.0, 1e3):
                fields: dict[str, Any] = {"claimed_epsilon": epsilon, "claimed_delta": delta, "odds": odds}
                assert ask(**fields).lower <= ask("membership.published", **fields).upper, fields


def by_forty_digits(epsilon: float, odds: float, neighbours: str) -> mp.mpf:
    with mp.workdps(40):
        e, gamma = mp.exp(mp.mpf(epsilon)), mp.mpf(odds)
        g = max(gamma, 1 / gamma)
        if neighbours == "substitution":
            return max(mp.sqrt(e) - mp.sqrt(g), 0) ** 2 / (e - 1)
        if g >= e**2:
            return mp.mpf(0)
        if gamma >= 1:
            if gamma <= (e + 1) / 2:
                return (e - gamma) / (e + 1)
            return (mp.sqrt(gamma * (e**2 - 1)) - e * mp.sqrt(gamma - 1)) ** 2 / (e + 1)
        if g <= 2 * e / (e + 1):
            return (e - g) / (e + 1)
        return (mp.sqrt(e**2 - 1) - mp.sqrt(g - 1)) ** 2 / (e * (e + 1))


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
def test_forty_digits_lie_between_the_ends_which_are_near(neighbours: str) -> None:
    for epsilon in (1e-12, 1e-5, 0.3, 0.7, 1.0, 4.0, 13.0, 30.0, 50.0):
        for odds in (1e-6, 1e-3, 0.3, 0.7, 0.99, 1.0, 1.0 + 1e-7, 1.2, 2.0, 50.0, 1e6):
            answer = ask(claimed_epsilon=epsilon, odds=odds, neighbours=neighbours)
            truth = by_forty_digits(epsilon, odds, neighbours)
            assert answer.lower <= truth <= answer.upper, (epsilon, odds)
            if truth > 1e-3:
                assert answer.upper - answer.lower < 1e-12, (epsilon, odds)


def test_the_limits_of_no_and_of_very_much_privacy() -> None:
    for neighbours in ("substitution", "add-remove"):
        for odds in (0.5, 1.0, 2.0):
            nothing = ask(claimed_epsilon=0.0, claimed_delta=0.0, odds=odds, neighbours=neighbours)
            assert (nothing.lower, nothing.upper) == (0.0, 0.0)
            everything = ask(claimed_epsilon=700.0, odds=odds, neighbours=neighbours)
            assert everything.lower == pytest.approx(1.0)
    only_delta = ask(claimed_epsilon=0.0, claimed_delta=0.3)
    assert only_delta.lower == pytest.approx(0.3)
    assert only_delta.upper == pytest.approx(0.3)
    assert ask(claimed_epsilon=1.0, claimed_delta=1.0).lower == pytest.approx(1.0)


def test_odds_beyond_the_privacy_leave_nothing() -> None:
    assert substitution_advantage(1.0, math.exp(1.0)) == pytest.approx(0.0, abs=1e-20)
    assert substitution_advantage(1.0, 2.8) == substitution_advantage(1.0, 1.0 / 2.8) == 0.0
    assert add_remove_advantage(1.0, 2.8) > 0.0
    assert add_remove_advantage(1.0, 7.4) == add_remove_advantage(1.0, 1.0 / 7.4) == 0.0


def test_adding_or_removing_allows_no_more_than_replacing_at_twice_the_epsilon() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        assert add_remove_advantage(epsilon, 1.0) == pytest.approx(substitution_advantage(2.0 * epsilon, 1.0))
        for odds in (0.3, 0.8, 1.3, 4.0):
            assert add_remove_advantage(epsilon, odds) <= substitution_advantage(2.0 * epsilon, odds) + 1e-15
    assert add_remove_advantage(1.0, 1.6) != pytest.approx(add_remove_advantage(1.0, 1.0 / 1.6), rel=1e-3)


def test_with_a_delta_adding_or_removing_has_two_ends() -> None:
    answer = ask(claimed_epsilon=1.0, claimed_delta=1e-3, neighbours="add-remove")
    assert answer.lower == pytest.approx(1e-3 + (1.0 - 1e-3) * math.tanh(0.5))
    assert answer.upper == pytest.approx(1.0 - (1.0 - 1e-3 * (1.0 + math.e)) * (1.0 - math.tanh(0.5)))


def test_the_paper_says_nothing_about_adding_or_removing() -> None:
    answer = ask("membership.published", claimed_epsilon=1.0, neighbours="add-remove")
    assert answer.detail == "The published bounds are for neighbours by substitution."


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("claimed_epsilon", -1.0, "Expected claimed_epsilon in [0, 700], got claimed_epsilon=-1.0."),
        ("claimed_delta", 1.2, "Expected claimed_delta in [0, 1], got claimed_delta=1.2."),
        ("neighbours", "near", "Expected neighbours in {substitution, add-remove}, got neighbours='near'."),
    ],
)
def test_a_bad_field_is_refused(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        problem("membership-private-advantage", **({"claimed_epsilon": 1.0} | {field: value}))


@pytest.mark.parametrize(
    ("epsilon", "odds"),
    [
        (4.4654516e-12, 0.9999999999910835),
        (1e-8, 0.9999999829771911),
        (1e-16, 0.9999999999999999),
        (0.3, 0.9),
    ],
)
def test_odds_just_below_1_lose_no_digits(epsilon: float, odds: float) -> None:
    """Compared with the formulas in 60 digits, as 1 / odds in doubles would lose the relevant digits."""
    with mp.workdps(60):
        e, g = mp.exp(mp.mpf(epsilon)), 1 / mp.mpf(odds)
        if g > e * e:
            truth = mp.mpf(0)
        elif g <= 2 * e / (e + 1):
            truth = (e - g) / (e + 1)
        else:
            truth = (mp.sqrt(e * e - 1) - mp.sqrt(g - 1)) ** 2 / (e * (e + 1))
        answer = ask(claimed_epsilon=epsilon, odds=odds, neighbours="add-remove")
        assert answer.lower <= truth <= answer.upper
        assert answer.upper <= truth * (1 + mp.mpf("1e-12")) + mp.mpf("1e-29")


def test_a_tiny_epsilon_has_a_tiny_advantage_and_not_none() -> None:
    answer = ask(claimed_epsilon=1e-200)
    assert 2.49e-201 < answer.lower <= 2.5e-201 <= answer.upper < 2.51e-201
