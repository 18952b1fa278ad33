"""Bounds by mutual information: all learners of few records, random channels, nearly worst learners."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privcore import Answer, Point, evaluate, find
from privcore.membership.learner.channel import channel_advantage
from privcore.membership.learner.information import information_bound
from privcore.membership.learner.majority import agreement_advantage, majority_bias
from tests.privcore.draws import problem

Array = NDArray[np.float64]


def bits(method: str, **fields: Any) -> Answer:
    return evaluate(Point(problem=problem("membership-bits-advantage", **fields), method=find(method)()))


def of_information(method: str, information: float) -> Answer:
    asked = problem("membership-information-advantage", information=information)
    return evaluate(Point(problem=asked, method=find(method)()))


def advantage(joint: Array, odds: float = 1.0) -> float:
    """Advantage for a joint distribution of release (rows) and record (columns)."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    gain = joint - odds * product if odds >= 1.0 else product - joint / odds
    return float(np.maximum(gain, 0.0).sum())


def mutual_information(joint: Array) -> float:
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0.0
    return float((joint[there] * np.log(joint[there] / product[there])).sum())


def multisets(law: Array, records: int) -> tuple[list[tuple[int, ...]], Array]:
    """All multisets of records, and the joint distribution of the multiset and one of its records."""
    weights: Counter[tuple[int, ...]] = Counter()
    for sample in itertools.product(range(law.size), repeat=records):
        weights[tuple(sorted(sample))] += math.prod(float(law[z]) for z in sample)  # type: ignore[assignment]
    found = sorted(weights)
    shares = np.array([np.bincount(sample, minlength=law.size) / records for sample in found])
    return found, shares * np.array([weights[sample] for sample in found])[:, None]


def one_bit_learners(size: int) -> Iterator[NDArray[np.bool_]]:
    for outputs in itertools.product((False, True), repeat=size - 1):
        yield np.array([False, *outputs])


@pytest.mark.parametrize(
    ("law", "records"),
    [((0.5, 0.5), 1), ((0.5, 0.5), 4), ((0.8, 0.2), 7), ((0.2, 0.3, 0.5), 3), ((1 / 3, 1 / 3, 1 / 3), 3)],
)
def test_no_learner_of_one_bit_exceeds_the_bound(law: tuple[float, ...], records: int) -> None:
    found, joint = multisets(np.array(law), records)
    best = max(
        advantage(np.array([joint[~output].sum(axis=0), joint[output].sum(axis=0)]))
        for output in one_bit_learners(len(found))
    )
    assert 0.0 < best <= bits("membership.information", bits=1, records=records).upper


@pytest.mark.parametrize("records", [1, 2, 5, 8])
def test_for_fair_coins_no_learner_of_one_bit_is_better_than_the_majority(records: int) -> None:
    found, joint = multisets(np.array([0.5, 0.5]), records)
    best = max(
        advantage(np.array([joint[~output].sum(axis=0), joint[output].sum(axis=0)]))
        for output in one_bit_learners(len(found))
    )
    assert bits("membership.majority", bits=1, records=records).lower == pytest.approx(best, rel=1e-11)


@pytest.mark.parametrize("records", [1, 3, 5])
def test_majorities_of_two_columns_attain_their_lower_end(records: int) -> None:
    found, joint = multisets(np.full(4, 0.25), records)
    columns = [[[z // 2, z % 2] for z in sample] for sample in found]
    outputs = [tuple(2 * sum(column) >= records for column in zip(*c, strict=True)) for c in columns]
    merged = np.array(
        [
            joint[[i for i, output in enumerate(outputs) if output == value]].sum(axis=0)
            for value in itertools.product((False, True), repeat=2)
        ]
    )
    lower = bits("membership.majority", bits=2, records=records).lower
    assert lower == pytest.approx(advantage(merged), rel=1e-10)
    assert lower <= bits("membership.information", bits=2, records=records).upper


def test_one_record_in_b_bits_is_known_exactly() -> None:
    for number in (1, 3, 40):
        lower, upper = (bits(f"membership.{m}", bits=number, records=1) for m in ("majority", "information"))
        assert lower.lower == pytest.approx(1.0 - 2.0**-number, rel=1e-11)
        assert upper.upper == pytest.approx(1.0 - 2.0**-number, rel=1e-11)


def test_few_bits_about_many_records_are_known_to_a_factor() -> None:
    for number, records in ((1, 10**6), (64, 10**6), (10**6, 10**9), (10**4, 10**12)):
        lower = bits("membership.majority", bits=number, records=records).lower
        upper = bits("membership.information", bits=number, records=records).upper
        assert 0.53 * upper < lower < 0.69 * upper, (number, records)


def test_the_majority_of_many_coins_has_the_normal_bias() -> None:
    assert majority_bias(10**12) * 10**6 == pytest.approx(1.0 / math.sqrt(2.0 * math.pi), rel=1e-11)
    law = [math.comb(9, k) / 2**9 for k in range(10)]
    assert majority_bias(9) == pytest.approx(sum(p * abs(k / 9 - 0.5) for k, p in enumerate(law)))


def test_the_threshold_of_agreements_is_the_best() -> None:
    for number, bias in ((5, 0.1), (40, 0.03), (41, 0.3)):
        law = [
            [math.comb(number, k) * p**k * (1.0 - p) ** (number - k) for k in range(number + 1)]
            for p in (0.5 + bias, 0.5)
        ]
        distance = sum(max(0.0, one - other) for one, other in zip(*law, strict=True))
        assert agreement_advantage(number, bias)[0] == pytest.approx(distance, rel=1e-10)


def test_no_random_channel_exceeds_the_bound_of_its_information_at_any_odds() -> None:
    """The bound also holds at other odds, without the published factor max(1, gamma)."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        joint = rng.dirichlet(np.full(12, rng.choice((0.05, 0.5, 5.0)))).reshape(4, 3)
        even, bound = advantage(joint), information_bound(mutual_information(joint))
        assert even <= bound + 1e-12
        for odds in (0.1, 0.6, 0.95, 1.05, 2.0, 30.0):
            assert advantage(joint, odds) <= even + 1e-12


def test_the_lower_end_is_that_of_a_channel_that_keeps_to_the_information() -> None:
    for information in (1e-8, 1e-3, 0.1, 1.0, 5.0):
        answer = of_information("membership.channel", information)
        size = int(answer.detail.split()[0])
        keep = answer.lower / (1.0 - 1.0 / size)
        joint = (keep * np.eye(size) + (1.0 - keep) / size) / size
        assert advantage(joint) == pytest.approx(answer.lower, rel=1e-9)
        assert mutual_information(joint) <= information * (1.0 + 1e-6)
        upper = of_information("membership.information", information).upper
        assert 0.85 * upper < answer.lower <= upper


def test_little_information_attains_the_inequality_of_pinsker() -> None:
    for information in (1e-300, 1e-12, 1e-6):
        lower = of_information("membership.channel", information).lower
        assert lower == pytest.approx(math.sqrt(information / 2.0), rel=1e-3)
    assert channel_advantage(0.0, 2) == 0.0


def test_no_information_leaves_nothing_and_much_leaves_everything() -> None:
    assert of_information("membership.information", 0.0).upper == 0.0
    assert of_information("membership.information", 1e6).upper == 1.0
    assert of_information("membership.channel", 1e6).lower > 1.0 - 1e-11


def test_a_bad_field_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected bits in \{1, ..., 1000000000000\}, got bits=0\."):
        problem("membership-bits-advantage", bits=0, records=1)
    with pytest.raises(ValueError, match=r"Expected information in \[0, 1000000\], got information=-0.1\."):
        problem("membership-information-advantage", information=-0.1)
