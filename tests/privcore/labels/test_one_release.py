"""Ratios of one release, and distributions over examples, against enumerations of all labels."""

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privcore import Answer, DomainError, Point, Status, evaluate, find_problem
from privcore.labels.sampling import LabelsSampling
from tests.privcore.draws import answer

SPACE = 1e-11
"""Relative and absolute distance of an end from the truth that is still tight."""


def encloses(found: Answer, truth: float, space: float = SPACE) -> bool:
    if math.isinf(truth):
        return found.lower == found.upper == math.inf
    wide = space * (1.0 + truth)
    return found.lower - 1e-15 <= truth <= found.upper + 1e-15 and found.upper - found.lower <= wide


def noise(k: int, s: int, epsilon: float) -> list[float]:
    """Probabilities of the clipped noisy counts 0, ..., k of s labels, or the count itself without noise."""
    if math.isinf(epsilon):
        return [float(u == s) for u in range(k + 1)]
    r = math.exp(-epsilon)
    inside = [(1 - r) / (1 + r) * r ** abs(u - s) for u in range(k + 1)]
    return [r**s / (1 + r), *inside[1:k], r ** (k - s) / (1 + r)]


def likelihoods(others: Sequence[float], epsilon: float) -> list[tuple[float, float]]:
    """Probabilities of each released count, given label 1 and label 0 of another member."""
    k = len(others) + 1
    ones, zeros = [0.0] * (k + 1), [0.0] * (k + 1)
    for labels in itertools.product((0, 1), repeat=k - 1):
        chance = math.prod(e if y else 1.0 - e for e, y in zip(others, labels, strict=True))
        for law, s in ((ones, sum(labels) + 1), (zeros, sum(labels))):
            for u, weight in enumerate(noise(k, s, epsilon)):
                law[u] += chance * weight
    return list(zip(ones, zeros, strict=True))


def ratio(one: float, zero: float) -> float:
    if one == 0.0 or zero == 0.0:
        return math.inf
    return abs(math.log(one / zero))


# ------------------------------------------------------------------------------------ one released value


@pytest.mark.parametrize("epsilon", [math.inf, 0.5, 3.0])
@pytest.mark.parametrize("bag", [(0.2, 0.5, 0.8), (0.4,), (0.05, 0.05, 0.9, 0.3)])
def test_the_ratio_of_a_release_is_that_of_an_enumeration(bag: tuple[float, ...], epsilon: float) -> None:
    mechanism = "llp" if math.isinf(epsilon) else "llp-geometric"
    asked = {"mechanism": mechanism, "bag": ",".join(map(repr, bag)), "label_epsilon": epsilon}
    for member in range(len(bag)):
        others = bag[:member] + bag[member + 1 :]
        for value, (one, zero) in enumerate(likelihoods(others, epsilon)):
            found = answer("label-release-ratio", "labels.bag", member=member + 1, released=value, **asked)
            assert encloses(found, ratio(one, zero)), (member, value)


@pytest.mark.parametrize("released", [-1.0, 0.3, 1.0, 1.8, 7.0])
def test_the_ratio_with_laplace_noise_is_that_of_the_densities(released: float) -> None:
    bag, epsilon = (0.2, 0.5, 0.7), 1.5
    law = [0.0] * 3
    for labels in itertools.product((0, 1), repeat=2):
        law[sum(labels)] += math.prod(e if y else 1.0 - e for e, y in zip(bag[1:], labels, strict=True))
    one, zero = (
        sum(q * math.exp(-epsilon * abs(released - s - label)) for s, q in enumerate(law)) for label in (1, 0)
    )
    fields = {"mechanism": "llp-laplace", "bag": "0.2,0.5,0.7", "label_epsilon": epsilon, "member": 1}
    assert encloses(
        answer("label-release-ratio", "labels.bag", released=released, **fields), ratio(one, zero)
    )


def test_ratios_do_not_depend_on_the_eta_of_the_member_and_survive_rare_labels() -> None:
    for own in (0.01, 0.5, 1e-200):
        fields = {"mechanism": "llp", "bag": ",".join([repr(own), *["0.01"] * 199]), "member": 1}
        found = answer("label-release-ratio", "labels.bag", released=199, **fields)
        # equal others: q(s - 1) / q(s) = s (1 - p) / ((k - s) p), with s = 199 and k = 200
        assert found.lower <= math.log(199 * 0.99 / 0.01) <= found.upper
        assert found.upper - found.lower <= 1e-6


def test_randomized_response_reveals_epsilon_and_nothing_reveals_nothing() -> None:
    found = answer(
        "label-release-ratio", "labels.bag", mechanism="rr", bag="0.3", label_epsilon=0.7, released=1
    )
    assert (found.lower, found.upper) == (0.7, 0.7)
    found = answer("label-release-ratio", "labels.bag", mechanism="none", bag="0.3", released=0)
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize(("released", "expected"), [(1, math.log(0.7 / 0.3)), (2, math.inf)])
def test_the_ratio_of_a_certain_label_is_that_of_its_likelihoods(released: int, expected: float) -> None:
    asked = {"mechanism": "llp", "bag": "0.3,1,0", "member": 2, "released": released}
    found = answer("label-release-ratio", "labels.bag", **asked)
    assert encloses(found, expected), "the others have the sum 0 or 1"


# ---------------------------------------------------------------------------------------------- classes


def histograms(rows: Sequence[Sequence[float]], label: int) -> dict[tuple[int, ...], float]:
    """Probabilities of the histograms of a bag, given the class of the first example."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    classes = range(len(rows[0]))
    for others in itertools.product(classes, repeat=len(rows) - 1):
        chance = math.prod(row[a] for row, a in zip(rows[1:], others, strict=True))
        found[tuple(((label, *others).count(a)) for a in classes)] += chance
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_ratio_of_two_classes_is_that_of_an_enumeration(seed: int) -> None:
    draw = random.Random(seed)
    number, k = draw.randint(2, 4), draw.randint(1, 4)
    rows = []
    for _ in range(k):
        weights = [draw.randint(1, 9) for _ in range(number)]
        rows.append([w / sum(weights) for w in weights])
    rows = [[*row[:-1], 1.0 - math.fsum(row[:-1])] for row in rows]
    text = ";".join(",".join(map(repr, row)) for row in rows)
    a, b = draw.sample(range(number), 2)
    laws = [histograms(rows, label) for label in (a, b)]
    for histogram in set(laws[0]) | set(laws[1]):
        one, zero = (law.get(histogram, 0.0) for law in laws)
        fields = {"first_class": a + 1, "second_class": b + 1, "histogram": ",".join(map(str, histogram))}
        found = answer("class-release-ratio", "labels.classes", mechanism="llp", classes=text, **fields)
        assert encloses(found, ratio(one, zero)), histogram


def test_a_randomized_class_has_the_ratio_epsilon_if_it_is_one_of_both() -> None:
    fields = {
        "mechanism": "rr",
        "classes": "equal(3)",
        "label_epsilon": 1.5,
        "first_class": 1,
        "second_class": 3,
    }
    for histogram, expected in (("1,0,0", 1.5), ("0,0,1", 1.5), ("0,1,0", 0.0)):
        found = answer("class-release-ratio", "labels.classes", histogram=histogram, **fields)
        assert (found.lower, found.upper) == (expected, expected)


@pytest.mark.parametrize("method", ["labels.sampling", "labels.composition"])
def test_a_share_of_all_examples_is_enclosed(method: str, tmp_path: Path) -> None:
    file = tmp_path / "seven.csv"
    file.write_text("eta\n" + "0.5\n" * 7)
    prior = f"column({file},eta)"
    asked = {"mechanism": "llp", "bag_size": 2, "threshold": 0.1, "draw": "partition"}
    assert encloses(answer("label-advantage-share", method, prior=prior, **asked), 1.0)


def test_a_share_below_the_doubles_is_possible() -> None:
    prior = "two-point(0.5,0.99,1e-200)"
    asked = {"mechanism": "llp", "prior": prior, "bag_size": 3, "threshold": 0.4}
    assert answer("label-advantage-share", "labels.composition", **asked).upper > 0.0


def test_impossible_releases_of_classes_have_no_ratio() -> None:
    fields = {"mechanism": "llp", "classes": "0.5,0.3,0.2;1,0,0", "first_class": 1, "second_class": 2}
    found = answer("class-release-ratio", "labels.classes", histogram="0,0,2", **fields)
    assert found.status is Status.NOT_APPLICABLE
    assert found.detail == "The release is impossible under both classes."
    with pytest.raises(DomainError, match="Expected histogram and both classes for the 3 classes"):
        find_problem("class-release-ratio").from_fields(fields | {"histogram": "1,0,0"})


# ----------------------------------------------------------------------------- overlapping, weighted sums


@pytest.mark.parametrize("seed", range(12))
def test_several_sums_reveal_what_an_enumeration_finds(seed: int) -> None:
    draw = random.Random(seed)
    k, number = draw.randint(1, 6), draw.randint(1, 3)
    etas = [draw.choice([0.0, 0.3, 0.5, 0.75, 1.0]) for _ in range(k)]
    sums = [[Fraction(draw.choice(["0", "1", "2", "-1", "0.5"])) for _ in range(k)] for _ in range(number)]
    member = draw.randrange(k)
    joint: dict[tuple[Fraction, ...], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 2)
    for labels in itertools.product((0, 1), repeat=k):
        chance = math.prod(
            (Fraction(e) if y else 1 - Fraction(e) for e, y in zip(etas, labels, strict=True)),
            start=Fraction(1),
        )
        seen = tuple(sum((w * y for w, y in zip(row, labels, strict=True)), Fraction(0)) for row in sums)
        joint[seen][labels[member]] += chance
    eta = Fraction(etas[member])
    truth = float(sum(map(max, joint.values())) - max(eta, 1 - eta))
    text = ";".join(",".join(str(float(w)) for w in row) for row in sums)
    fields = {"bag": ",".join(map(repr, etas)), "sums": text, "member": member + 1}
    assert encloses(answer("label-sums-advantage", "labels.sums", **fields), truth), fields


def test_overlapping_sums_reveal_more_than_each_and_one_plain_sum_is_a_bag() -> None:
    bag, member = "0.5,0.5,0.5", 2
    one = answer("label-sums-advantage", "labels.sums", bag=bag, sums="1,1,1", member=member)
    whole = answer("label-member-advantage", "labels.member", mechanism="llp", bag=bag, member=member)
    assert one.lower <= whole.upper
    assert whole.lower <= one.upper
    first = answer("label-sums-advantage", "labels.sums", bag=bag, sums="1,1,0", member=member)
    both = answer("label-sums-advantage", "labels.sums", bag=bag, sums="1,1,0;0,1,1", member=member)
    assert first.upper == pytest.approx(0.25)
    assert both.lower == pytest.approx(0.375), "two bags that share a member reveal more than each"
    weighted = answer("label-sums-advantage", "labels.sums", bag=bag, sums="1,2,4", member=member)
    assert weighted.lower == pytest.approx(0.5), "powers of two reveal every label"


# ------------------------------------------------------------------------- distributions over examples


def advantage(own: float, others: Sequence[float], epsilon: float) -> float:
    pairs = likelihoods(others, epsilon)
    return sum(max(own * one, (1.0 - own) * zero) for one, zero in pairs) - max(own, 1.0 - own)


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
@pytest.mark.parametrize("threshold", [0.0, 0.013, 0.05, 0.12])
def test_the_share_of_examples_above_a_threshold_is_that_of_all_bags(
    epsilon: float, threshold: float
) -> None:
    values, weights, k = (0.1, 0.6), (0.7, 0.3), 3
    truth = 0.0
    for places in itertools.product(range(2), repeat=k):
        etas = [values[p] for p in places]
        chance = math.prod(weights[p] for p in places)
        truth += chance * (advantage(etas[0], etas[1:], epsilon) > threshold + 1e-12)
    mechanism = "llp" if math.isinf(epsilon) else "llp-geometric"
    fields = {"mechanism": mechanism, "prior": "two-point(0.1,0.6,0.3)", "bag_size": k}
    fields |= {"label_epsilon": epsilon, "threshold": threshold}
    exact = answer("label-advantage-share", "labels.composition", **fields)
    drawn = answer("label-advantage-share", "labels.sampling", **fields)
    assert exact.lower - 1e-12 <= truth <= exact.upper + 1e-12
    assert threshold == 0.0 or exact.upper - exact.lower <= 1e-12
    assert drawn.lower <= truth <= drawn.upper


def test_shares_in_a_partition_are_those_of_all_choices_of_rows(tmp_path: Any) -> None:
    rows, k, threshold = (0.5, 0.5, 0.1, 0.7), 2, 0.06
    file = tmp_path / "scores.csv"
    file.write_text("p\n" + "\n".join(map(str, rows)) + "\n")
    pairs = list(itertools.permutations(range(len(rows)), k))
    truth = sum(advantage(rows[i], [rows[j]], math.inf) > threshold for i, j in pairs) / len(pairs)
    fields = {"mechanism": "llp", "prior": f"column({file},p)", "bag_size": k, "draw": "partition"}
    exact = answer("label-advantage-share", "labels.composition", threshold=threshold, **fields)
    assert exact.lower - 1e-12 <= truth <= exact.upper + 1e-12
    assert exact.upper - exact.lower <= SPACE
    drawn = answer("label-advantage-share", "labels.sampling", threshold=threshold, **fields)
    assert drawn.lower <= truth <= drawn.upper


def test_one_example_of_randomized_response_is_the_tail_of_one_example() -> None:
    fields = {"mechanism": "rr", "prior": "beta(2,30)", "label_epsilon": 4.0, "threshold": 0.05}
    share = answer("label-advantage-share", "labels.response", **fields)
    tail = answer("label-advantage-tail", "labels.response", **fields)
    assert (share.lower, share.upper) == (tail.lower, tail.upper)
    assert 0.0 < share.lower < 1.0


@pytest.mark.parametrize("eta", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("draw", ["with-replacement", "partition"])
def test_the_ratio_at_an_eta_has_the_tail_and_the_quantile_of_all_bags(
    eta: float, draw: str, tmp_path: Any
) -> None:
    rows, k, level, threshold = (0.2, 0.9, 0.6, 0.0), 3, 0.8, 1.0
    file = tmp_path / "scores.csv"
    file.write_text("p\n" + "\n".join(map(str, rows)) + "\n")
    others = [r for r in rows if r != eta]
    choices = (
        list(itertools.permutations(others, k - 1))
        if draw == "partition"
        else list(itertools.product(rows, repeat=k - 1))
    )
    atoms: dict[float, float] = defaultdict(float)
    for chosen in choices:
        for one, zero in likelihoods(chosen, math.inf):
            chance = (eta * one + (1.0 - eta) * zero) / len(choices)
            if chance > 0.0:
                atoms[round(ratio(one, zero), 9)] += chance
    tail = sum(chance for t, chance in atoms.items() if t > threshold)
    below, quantile = 0.0, math.inf
    for t, chance in sorted(atoms.items()):
        below += chance
        if below >= level:
            quantile = t
            break
    fields = {"mechanism": "llp", "prior": f"column({file},p)", "bag_size": k, "draw": draw, "eta": eta}
    found = answer("label-ratio-tail-at", "labels.composition", log_ratio=threshold, **fields)
    assert encloses(found, tail)
    drawn = find_problem("label-ratio-tail-at").from_fields(fields | {"log_ratio": threshold})
    interval = evaluate(Point(problem=drawn, method=LabelsSampling(samples=20_000)))
    assert interval.lower <= tail <= interval.upper
    found = answer("label-ratio-quantile-at", "labels.composition", level=level, **fields)
    assert encloses(found, quantile, 1e-8) if math.isinf(quantile) else abs(found.upper - quantile) < 1e-8
    drawn = find_problem("label-ratio-quantile-at").from_fields(fields | {"level": level})
    interval = evaluate(Point(problem=drawn, method=LabelsSampling(samples=20_000)))
    assert interval.lower <= quantile + 1e-8
    assert quantile - 1e-8 <= interval.upper
