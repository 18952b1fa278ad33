"""The maximum of bits, and attacks that know the training set, against sums over all cases."""

from fractions import Fraction
from itertools import product
from math import prod

import pytest

from privcore import DomainError
from privcore.distributions.record_notation import law
from privcore.membership.discrete.maximum import (
    MembershipDataset,
    MembershipDatasetAdvantage,
    MembershipMaximum,
    MembershipMaximumAdvantage,
)
from privcore.membership.discrete.worst_case import worst_advantage

ODDS = (0.25, 0.9, 1.0, 1.01, 2.0)


def gain(p1: Fraction, p0: Fraction, odds: Fraction) -> Fraction:
    """Return the contribution of one observation to the advantage."""
    return max(Fraction(0), p1 - odds * p0 if odds >= 1 else p0 - p1 / odds)


@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize(("p", "n"), [(0.5, 1), (0.5, 3), (0.125, 4), (0.75, 6), (1.0, 2)])
def test_the_maximum_of_bits_has_the_advantage_of_the_sum_over_all_training_sets(
    p: float, n: int, odds: float
) -> None:
    chance = (1 - Fraction(p), Fraction(p))
    joint: dict[tuple[int, int], Fraction] = {}
    of_maximum: dict[int, Fraction] = {}
    for bits in product((0, 1), repeat=n):
        weight = prod((chance[bit] for bit in bits), start=Fraction(1))
        joint[max(bits), bits[0]] = joint.get((max(bits), bits[0]), Fraction(0)) + weight
        of_maximum[max(bits)] = of_maximum.get(max(bits), Fraction(0)) + weight
    truth = sum(
        gain(joint.get((m, z), Fraction(0)), of_maximum.get(m, Fraction(0)) * chance[z], Fraction(odds))
        for m, z in product((0, 1), repeat=2)
    )
    asked = MembershipMaximumAdvantage(atom_probability=p, records=n, odds=odds)
    found = MembershipMaximum().answer(asked, 0)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-11 * float(truth) + 1e-11
    worst = worst_advantage(law(f"bernoulli({p})"), n, odds)
    assert found.lower <= worst[1]


def test_lemma_22_has_too_small_an_order() -> None:
    for n in (10, 100, 1000):
        asked = MembershipMaximumAdvantage(atom_probability=0.01, records=n)
        found = MembershipMaximum().answer(asked, 0)
        assert found.lower / 0.99**n == pytest.approx(0.02, rel=1e-9)  # o((1 - p)^n) would vanish


@pytest.mark.parametrize("odds", ODDS)
def test_given_the_training_set_the_mean_over_training_sets_is_the_worst_advantage(odds: float) -> None:
    p, n = (0.5, 0.25, 0.25), 4
    mean = 0.0
    for values in product(range(3), repeat=n):
        pairs = ",".join(f"{values.count(k)}/{p[k]}" for k in range(3) if k in values)
        asked = MembershipDatasetAdvantage(dataset=pairs, odds=odds)
        found = MembershipDataset().answer(asked, 0)
        mean += prod(p[k] for k in values) * found.upper
    low, high = worst_advantage(law("atoms(0.5,0.25,0.25)"), n, odds)
    assert mean == pytest.approx(low, rel=1e-9, abs=1e-9) == pytest.approx(high, rel=1e-9, abs=1e-9)


def test_a_training_set_of_continuous_records_is_recognised_with_certainty() -> None:
    for odds in ODDS:
        asked = MembershipDatasetAdvantage(dataset="1/0,1/0,1/0", odds=odds)
        assert MembershipDataset().answer(asked, 0).upper == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("text", ["", "3", "3/0.5;1/0.5", "0/0.5", "1/1.5", "1/0.9,1/0.2", "1/0.5/2", "1/1e"])
def test_a_training_set_that_is_impossible_is_refused(text: str) -> None:
    with pytest.raises(DomainError, match="Expected"):
        MembershipDatasetAdvantage(dataset=text)


def test_probabilities_with_a_sum_above_1_are_divided_by_it() -> None:
    total = Fraction(0.5) + Fraction(0.5000000008)
    asked = MembershipDatasetAdvantage(dataset="1/0.5,1/0.5000000008")
    found = MembershipDataset().answer(asked, 0)
    assert found.lower <= abs(Fraction(0.5) / total - Fraction(1, 2)) <= found.upper <= 4.1e-10


def test_an_advantage_below_the_normal_doubles_is_enclosed() -> None:
    p, n = Fraction(0.7912172800983495), 463
    asked = MembershipMaximumAdvantage(atom_probability=float(p), records=n)
    found = MembershipMaximum().answer(asked, 0)
    assert found.lower <= 2 * p * (1 - p) ** n <= found.upper < 1e-299
