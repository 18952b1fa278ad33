"""Rare labels, and releases far from every count, against arithmetic with exponents of any size."""

import itertools
import math
import random
from typing import Any

import mpmath
import pytest

from tests.privcore.draws import answer

mp = mpmath.mp


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(60):
        yield


def sums(etas: list[float]) -> list[mpmath.mpf]:
    """Return the distribution of the sum of labels with these probabilities."""
    law = [mp.mpf(1)]
    for eta in map(mp.mpf, etas):
        law = [a * (1 - eta) + b * eta for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def laplace_advantage(etas: list[float], member: int, epsilon: float) -> mpmath.mpf:
    """Return the advantage on a member under Laplace noise, by tail probabilities at the one threshold.

    The likelihood ratio rises with the release, so the best attack guesses the label by a threshold u. Then
    the advantage is eta P(z > u | 1) - (1 - eta) P(z > u | 0) if eta is at most 1/2, else the mirror image.
    """
    eta, others, k = mp.mpf(etas[member]), sums(etas[:member] + etas[member + 1 :]), len(etas)
    if eta > 0.5:
        return laplace_advantage([1.0 - e for e in etas], member, epsilon)
    rate = mp.mpf(epsilon)
    powers = [mp.exp(rate * s) for s in range(k + 1)]

    def above(u: mpmath.mpf, label: int) -> mpmath.mpf:
        total = mp.mpf(0)
        for s, q in enumerate(others):
            far = mp.exp(-rate * abs(u - s - label)) / 2
            total += q * (far if u >= s + label else 1 - far)
        return total

    def difference(u: mpmath.mpf) -> mpmath.mpf:
        far = mp.exp(rate * u)
        noise = [min(power / far, far / power) for power in powers]  # exp(-rate |u - s|)
        one = sum(q * noise[s + 1] for s, q in enumerate(others))
        return eta * one - (1 - eta) * sum(q * noise[s] for s, q in enumerate(others))

    low, high = mp.mpf(0), mp.mpf(k)
    if difference(high) <= 0:
        return mp.mpf(0)
    for _ in range(700):  # the error is of the order of the square of the distance
        middle = (low + high) / 2
        low, high = (low, middle) if difference(middle) > 0 else (middle, high)
    return eta * above(low, 1) - (1 - eta) * above(low, 0)


@pytest.mark.parametrize(
    ("etas", "epsilon"),
    [([1e-200], 500.0), ([1e-40] * 6, 100.0), ([1e-40] * 4 + [1e-45], 100.0), ([1e-250, 0.3], 690.0)],
)
def test_a_rare_label_under_laplace_noise_keeps_its_advantage(etas: list[float], epsilon: float) -> None:
    bag = ",".join(map(repr, etas))
    fields = {"mechanism": "llp-laplace", "bag": bag, "label_epsilon": epsilon}
    mp.dps = 400
    truths = [laplace_advantage(etas, member, epsilon) for member in range(len(etas))]
    for member, truth in enumerate(truths):
        found = answer("label-member-advantage", "labels.member", **fields, member=member + 1)
        assert found.lower <= truth <= found.upper
        assert found.upper <= found.lower * (1.0 + 1e-9) + 1e-259, "as narrow as for labels that are not rare"
    found = answer("label-bag-advantage", "labels.bag", **fields)
    assert found.lower <= sum(truths) / len(etas) <= found.upper


def test_large_bags_of_rare_labels_keep_their_advantage_under_laplace_noise() -> None:
    mp.dps = 400
    truth = laplace_advantage([0.001] * 150, 0, 20.0)
    assert mp.nstr(truth, 8) == "1.1364166e-186"
    found = answer(
        "label-advantage",
        "labels.composition",
        mechanism="llp-laplace",
        prior="0.001",
        bag_size=150,
        label_epsilon=20.0,
    )
    assert found.lower <= truth <= found.upper <= found.lower * (1.0 + 1e-9)
    cells = answer(
        "label-advantage-at",
        "labels.cells",
        mechanism="llp-laplace",
        prior="uniform",
        bag_size=1,
        eta=1e-200,
        label_epsilon=500.0,
    )
    assert cells.lower <= laplace_advantage([1e-200], 0, 500.0) <= cells.upper


def laplace_posterior(etas: list[float], member: int, epsilon: float, z: float) -> mpmath.mpf:
    """Return the posterior of a member given a noisy count, by the densities at that count."""
    others = sums(etas[:member] + etas[member + 1 :])
    noise = [mp.exp(-mp.mpf(epsilon) * abs(mp.mpf(z) - s)) for s in range(len(etas) + 1)]
    one = etas[member] * sum(q * noise[s + 1] for s, q in enumerate(others))
    zero = (1 - mp.mpf(etas[member])) * sum(q * noise[s] for s, q in enumerate(others))
    return one / (one + zero)


def far_release(seed: int) -> tuple[list[float], float, float]:
    """Draw a bag, an epsilon, and a release that a double places between counts or far from all of them."""
    rng = random.Random(seed)
    etas = [
        rng.choice([rng.random(), 1e-300, 1.0 - 2.0**-53, 0.0, 1.0, 0.5]) for _ in range(rng.randint(1, 6))
    ]
    epsilon = min(700.0, 10.0 ** rng.uniform(-6.0, 2.9))
    z = rng.choice(
        [
            rng.uniform(0.0, len(etas)),
            rng.randrange(len(etas)) + 2.0 ** rng.uniform(-60.0, -1.0),
            rng.choice([-1.0, 1.0]) * (2.0 ** rng.randint(1, 29) - rng.random()),
            rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(0.0, 9.0),
        ]
    )
    return etas, epsilon, z


CHOSEN = [([0.3, 0.4], 1.0, -536870911.99999994), ([0.3, 0.4], 3.0, -511.7), ([0.3, 0.4], 10.0, -31.7)]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(-len(CHOSEN), 60))
def test_a_release_far_from_every_count_is_no_less_accurate(seed: int) -> None:
    etas, epsilon, z = far_release(seed) if seed >= 0 else CHOSEN[seed]
    for member in range(len(etas)):
        found = answer(
            "label-posterior",
            "labels.bag",
            mechanism="llp-laplace",
            bag=",".join(map(repr, etas)),
            label_epsilon=epsilon,
            released=z,
            member=member + 1,
        )
        truth = laplace_posterior(etas, member, epsilon, z)
        assert found.lower <= truth <= found.upper, (etas, epsilon, z)
        assert seed >= 0 or found.upper <= found.lower * (1.0 + 1e-11)


def histogram_advantage(rows: list[list[float]]) -> mpmath.mpf:
    """Return the advantage on the class of the first example, by enumeration of all classes."""
    classes = range(len(rows[0]))
    joint: dict[tuple[int, ...], list[mpmath.mpf]] = {}
    for drawn in itertools.product(classes, repeat=len(rows)):
        released = tuple(drawn.count(a) for a in classes)
        weight = mp.fprod(mp.mpf(row[a]) for row, a in zip(rows, drawn, strict=True))
        joint.setdefault(released, [mp.mpf(0)] * len(classes))[drawn[0]] += weight
    blind = max(classes, key=rows[0].__getitem__)
    return mp.fsum(max(some) - some[blind] for some in joint.values())


def rare_classes(seed: int) -> list[list[float]]:
    """Draw the probabilities of the classes of a few examples, with products below all doubles."""
    rng = random.Random(seed)
    classes, power = rng.choice([2, 3]), rng.choice([60.0, 150.0, 600.0])
    drawn = [
        [rng.random() ** rng.choice([1.0, power]) for _ in range(classes)]
        for _ in range(rng.choice([2, 3, 4]))
    ]
    rows = [[max(x, 1e-300) for x in row] for row in drawn]
    return [[x / math.fsum(row) for x in row] for row in rows]


SMALL = [
    [[1e-210, 1.0], [1e-200, 1.0]],
    [[1.3e-163, 1.0], [3.7e-155, 1.0]],
    [[1.37e-160, 1.0], [3.7e-157, 1.0]],
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(-len(SMALL), 60))
def test_products_of_rare_classes_may_underflow(seed: int) -> None:
    rows = rare_classes(seed) if seed >= 0 else SMALL[seed]
    classes = ";".join(",".join(map(repr, row)) for row in rows)
    found = answer("class-advantage", "labels.classes", mechanism="llp", classes=classes)
    truth = histogram_advantage(rows)
    assert found.lower <= truth <= found.upper
    assert found.upper > 0.0 or truth == 0


def test_classes_that_are_certain_have_the_advantage_zero() -> None:
    found = answer("class-advantage", "labels.classes", mechanism="llp", classes="1,0,0;0.2,0.3,0.5")
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("prior", "bag_size"), [(0.7, 2064), (0.7, 2060), (0.3, 610), (0.5, 1040), (0.01, 160)]
)
def test_certain_disclosure_of_a_large_bag_is_enclosed_by_numbers_that_are_not_normal(
    prior: float, bag_size: int
) -> None:
    found = answer(
        "label-ratio-infinite", "labels.infinite", mechanism="llp", prior=repr(prior), bag_size=bag_size
    )
    p = mp.mpf(prior)
    assert found.lower <= p**bag_size + (1 - p) ** bag_size <= found.upper


@pytest.mark.parametrize("method", ["labels.composition", "labels.sampling"])
@pytest.mark.parametrize("eta", [1e-60, 1e-97, 1e-100])
def test_an_underflow_makes_no_ratio_infinite(eta: float, method: str) -> None:
    """Only the sum of all labels has an infinite ratio, if the attacked label is certain."""
    fields = {"mechanism": "llp", "prior": f"point({eta!r})", "bag_size": 7, "eta": 1.0}
    for log_ratio in (500.0, 100.0):
        found = answer("label-ratio-tail-at", method, log_ratio=log_ratio, **fields)
        ones = sums([eta] * 6)
        truth = sum(
            (
                one
                for one, zero in zip(ones, [*ones[1:], 0], strict=True)
                if zero == 0 or abs(mp.log(one / zero)) > log_ratio
            ),
            mp.mpf(0),
        )
        assert found.lower <= truth <= found.upper
        assert (found.lower > 0.99) == (log_ratio == 100.0)
