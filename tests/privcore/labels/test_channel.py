"""Randomized response over several classes, the variance of releases, and epsilon 0, against closed forms."""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from privcore import Answer, DomainError, find, find_problem
from privcore.labels.learning.gradient import proportion_gradient
from privcore.labels.learning.release import release
from tests.privcore.draws import answered

NARROW = 1e-9
"""Relative width of an exact answer; the slack of a closed form is 1e-11."""


def encloses(found: Answer, truth: mpmath.mpf | float) -> bool:
    return found.lower <= truth <= found.upper and found.upper - found.lower <= NARROW * float(truth) + 1e-300


# --------------------------------------------------------------------------- flips and capacity of a class


@pytest.mark.parametrize("number", [2, 3, 10, 1_000_000])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.01, 1.0, 8.0, 100.0, 700.0])
def test_flips_and_capacity_are_those_of_the_channel(number: int, epsilon: float) -> None:
    with mpmath.workdps(400):
        kept = mpmath.exp(epsilon) / (mpmath.exp(epsilon) + number - 1)
        flipped = (number - 1) / (mpmath.exp(epsilon) + number - 1)
        entropy = -kept * mpmath.log(kept, 2) - flipped * mpmath.log(flipped, 2)
        bits = mpmath.log(number, 2) - entropy - flipped * mpmath.log(number - 1, 2)
        fields = {"class_number": number, "label_epsilon": epsilon}
        assert encloses(answered("class-flip-probability", "labels.channel", **fields), flipped)
        assert encloses(answered("class-capacity", "labels.channel", **fields), bits if epsilon else 0.0)


@pytest.mark.parametrize(
    ("number", "flipped"), [(2, 0.25), (4, 0.75), (10, 0.1), (10, 0.8999999), (3, 1e-300)]
)
def test_the_epsilon_of_a_flip_probability_inverts_it(number: int, flipped: float) -> None:
    with mpmath.workdps(50):
        truth = mpmath.log((1 - mpmath.mpf(flipped)) * (number - 1) / mpmath.mpf(flipped))
        fields = {"class_number": number, "flip_probability": flipped}
        assert encloses(answered("class-flip-epsilon", "labels.channel", **fields), max(truth, mpmath.mpf(0)))


def test_no_flip_needs_an_infinite_epsilon_and_more_than_a_blind_guess_is_refused() -> None:
    found = answered("class-flip-epsilon", "labels.channel", class_number=3, flip_probability=0)
    assert found.lower == found.upper == math.inf
    with pytest.raises(
        DomainError, match=r"Expected flip_probability <= 0\.75, that of a blind guess among 4"
    ):
        find_problem("class-flip-epsilon").from_fields({"class_number": 4, "flip_probability": 0.76})


@pytest.mark.parametrize(("number", "bits"), [(2, 0.5), (8, 1e-20), (8, 2.9), (1000, 0.01), (2, 1e-300)])
def test_the_epsilon_of_a_capacity_has_this_capacity(number: int, bits: float) -> None:
    found = answered("class-capacity-epsilon", "labels.channel", class_number=number, capacity=bits)
    assert found.upper - found.lower <= 1e-8 * found.upper
    with mpmath.workdps(700):
        for epsilon, sign in ((found.lower, -1), (found.upper, 1)):
            each = mpmath.exp(epsilon)
            shares = [each / (each + number - 1), 1 / (each + number - 1)]
            there = mpmath.log(number, 2) + sum(
                n * p * mpmath.log(p, 2) for n, p in zip((1, number - 1), shares, strict=True)
            )
            assert sign * (there - bits) >= 0


def test_a_capacity_without_noise_is_the_limit() -> None:
    found = answered("class-capacity-epsilon", "labels.channel", class_number=8, capacity=3)
    assert found.upper == math.inf
    assert found.lower > 20.0
    found = answered("class-capacity-epsilon", "labels.channel", class_number=8, capacity=0)
    assert found.lower == found.upper == 0.0
    with pytest.raises(DomainError, match=r"Expected capacity <= 1 bits, that of 2 classes without noise"):
        find_problem("class-capacity-epsilon").from_fields({"class_number": 2, "capacity": 1.5})


# ----------------------------------------------------------------------------------- variances, gradients


def moments(k: int, s: int, epsilon: float) -> mpmath.mpf:
    """The variance of the debiased proportion with clipped geometric noise, from its distribution."""
    r = mpmath.exp(-epsilon)
    chance = [(1 - r) / (1 + r) * r ** abs(u - s) for u in range(k + 1)]
    chance[0], chance[k] = r**s / (1 + r), r ** (k - s) / (1 + r)
    value = [mpmath.mpf(u) + ((u == k) - (u == 0)) * r / (1 - r) for u in range(k + 1)]
    mean = sum(c * v for c, v in zip(chance, value, strict=True))
    assert abs(mean - s) < 1e-20, "debiased"
    return sum(c * (v - s) ** 2 for c, v in zip(chance, value, strict=True)) / k**2


@pytest.mark.parametrize("k", [1, 2, 3, 8])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 700.0])
def test_the_variance_is_the_largest_one_over_the_labels(k: int, epsilon: float) -> None:
    with mpmath.workdps(700):
        geometric = max(moments(k, s, epsilon) for s in range(k + 1))
        fields = {"bag_size": k, "label_epsilon": epsilon}
        noisy = {"mechanism": "llp-geometric"} | fields
        assert encloses(answered("label-noise-variance", "labels.variance", **noisy), geometric)
        assert answered("label-noise-variance", "labels.unclipped", **noisy).upper > geometric
        laplace = answered("label-noise-variance", "labels.variance", mechanism="llp-laplace", **fields)
        assert encloses(laplace, 2 / (k * mpmath.mpf(epsilon)) ** 2)


def test_variances_of_a_tiny_epsilon_and_of_no_noise_are_bounded() -> None:
    found = answered(
        "label-noise-variance", "labels.variance", mechanism="rr", bag_size=1, label_epsilon=1e-200
    )
    assert (found.lower > 1e149, found.upper) == (True, math.inf)
    found = answered("label-noise-variance", "labels.variance", mechanism="rr", bag_size=1, label_epsilon=0)
    assert (found.lower, found.upper) == (math.inf, math.inf)
    found = answered("label-noise-variance", "labels.variance", mechanism="llp", bag_size=7)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_the_mean_square_of_the_gradient_is_that_of_all_labels_and_releases() -> None:
    etas, weights = (0.2, 0.5, 0.7), [0.3, -1.0]
    features = [[1.0, 0.5], [1.0, -2.0], [0.0, 1.0]]
    epsilon, k = 1.0, 3
    total, clean = 0.0, 0.0
    r = math.exp(-epsilon)
    for labels in itertools.product((0, 1), repeat=k):
        chance = math.prod(e if y else 1.0 - e for e, y in zip(etas, labels, strict=True))
        s = sum(labels)
        clean += chance * float(np.square(proportion_gradient(weights, features, s / k)).sum())
        for u in range(k + 1):
            noise = r**s / (1 + r) if u == 0 else r ** (k - s) / (1 + r)
            noise = noise if u in (0, k) else (1 - r) / (1 + r) * r ** abs(u - s)
            released = (u + ((u == k) - (u == 0)) * r / (1 - r)) / k
            total += chance * noise * float(np.square(proportion_gradient(weights, features, released)).sum())
    fields: dict[str, Any] = {"bag": "0.2,0.5,0.7", "features": "1,0.5;1,-2;0,1", "weights": "0.3,-1"}
    noisy = fields | {"mechanism": "llp-geometric", "label_epsilon": epsilon}
    assert encloses(answered("label-gradient-square", "labels.gradient", **noisy), total)
    assert encloses(answered("label-gradient-square", "labels.gradient", mechanism="llp", **fields), clean)
    assert total < answered("label-gradient-square", "labels.noisiest", **noisy).upper < 1.2 * total


def test_the_gradient_with_laplace_noise_is_that_of_many_releases() -> None:
    etas, features = np.array([0.2, 0.5, 0.7]), [[1.0, 0.5], [1.0, -2.0], [0.0, 1.0]]
    rng = np.random.default_rng(5)
    squares = []
    for _ in range(20_000):
        labels = (rng.random(3) < etas).astype(np.int64)
        drawn = release("llp-laplace", labels, 3, 0.8, rng)
        squares.append(float(np.square(proportion_gradient([0.3, -1.0], features, drawn.targets[0])).sum()))
    fields: dict[str, Any] = {"bag": "0.2,0.5,0.7", "features": "1,0.5;1,-2;0,1", "weights": "0.3,-1"}
    fields |= {"mechanism": "llp-laplace", "label_epsilon": 0.8}
    found = answered("label-gradient-square", "labels.gradient", **fields)
    assert abs(found.lower - np.mean(squares)) < 4.0 * np.std(squares) / math.sqrt(len(squares))


# ------------------------------------------------------------------------------------------------ epsilon 0


@pytest.mark.parametrize("prior", ["uniform", "0.5", "beta(2,30)", "two-point(0.5,0.3,0.2)"])
def test_randomized_response_at_0_is_a_blind_guess(prior: str) -> None:
    fields: dict[str, Any] = {"mechanism": "rr", "prior": prior, "label_epsilon": 0}
    for problem in ("label-advantage", "label-ratio-infinite"):
        found = answered(problem, "labels.response", **fields)
        assert (found.lower, found.upper) == (0.0, 0.0)
    found = answered("label-advantage-tail", "labels.response", threshold=0, **fields)
    assert (found.lower, found.upper) == (0.0, 0.0)
    found = answered("label-ratio-quantile", "labels.response", level=0.98, **fields)
    assert (found.lower, found.upper) == (0.0, 0.0)
    blind = answered("label-attack-accuracy", "labels.response", mechanism="none", prior=prior)
    accuracy = answered("label-attack-accuracy", "labels.response", **fields)
    assert accuracy.lower == pytest.approx(blind.lower)
    assert accuracy.upper - accuracy.lower < 1e-9
    found = answered("label-advantage", "labels.unchanged", **fields)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_releases_at_0_leave_the_posterior_and_the_classes_alone() -> None:
    fields: dict[str, Any] = {"mechanism": "rr", "label_epsilon": 0}
    found = answered("label-posterior", "labels.bag", bag="0.3", released=1, **fields)
    assert found.lower <= 0.3 <= found.upper < 0.3 + 1e-12
    found = answered("class-advantage", "labels.classes", classes="0.2,0.3,0.5", **fields)
    assert (found.lower, found.upper) == (0.0, 0.0)


@pytest.mark.parametrize("mechanism", ["llp-laplace", "llp-geometric"])
def test_noise_on_sums_needs_a_positive_epsilon(mechanism: str) -> None:
    with pytest.raises(
        DomainError, match=f"Expected label_epsilon > 0 for {mechanism}, whose noise would be"
    ):
        find_problem("label-advantage").from_fields(
            {"mechanism": mechanism, "prior": "uniform", "bag_size": 2, "label_epsilon": 0}
        )


@pytest.mark.parametrize(
    ("mechanism", "feature", "weight", "epsilon"),
    [("llp", 1e-18, 7e20, math.inf), ("llp", 1e-10, 7e12, math.inf), ("rr", 1e-100, 6.9e102, 1e-100)],
)
def test_a_tiny_feature_at_a_large_logit_loses_no_digits(
    mechanism: str, feature: float, weight: float, epsilon: float
) -> None:
    asked = {"bag": "0.5", "features": f"{feature!r}", "weights": f"{weight!r}", "label_epsilon": epsilon}
    with mpmath.workdps(400):
        q = 1 / (1 + mpmath.exp(-mpmath.mpf(feature) * mpmath.mpf(weight)))
        noise = 0 if math.isinf(epsilon) else mpmath.exp(-epsilon) / mpmath.expm1(-epsilon) ** 2
        truth = mpmath.mpf(feature) ** 2 * ((q - 0.5) ** 2 + 0.25 + noise)
    assert encloses(answered("label-gradient-square", "labels.gradient", mechanism=mechanism, **asked), truth)


def test_values_below_the_normal_doubles_are_enclosed() -> None:
    tiny = answered("class-capacity", "labels.channel", class_number=2, label_epsilon=1e-200)
    assert tiny.lower == 0.0 < tiny.upper < 1e-300
    asked = {"mechanism": "llp-geometric", "bag_size": 10**6, "label_epsilon": 700.0}
    with mpmath.workdps(60):
        truth = 2 * mpmath.exp(-700) / mpmath.mpf(10) ** 12  # times a factor near 1 + e^-700
    assert encloses(answered("label-noise-variance", "labels.variance", **asked), truth)


def test_weights_with_more_digits_than_a_double_are_refused() -> None:
    with pytest.raises(DomainError, match="at most 15 digits, got 9007199254740993"):
        answered(
            "label-sums-advantage",
            "labels.sums",
            bag="0.5,0.5,0.5",
            sums="9007199254740993,9007199254740992,1",
            member=1,
        )


@pytest.mark.parametrize("method", ["labels.composition", "labels.sampling"])
def test_ratios_of_labels_that_are_too_rare_are_refused(method: str) -> None:
    asked = {"mechanism": "llp", "prior": "point(1e-300)", "bag_size": 3, "log_ratio": 700.0, "eta": 0.5}
    reason = find(method)().applies(find_problem("label-ratio-tail-at").from_fields(asked))
    assert reason is not None
    assert "too small for ratios" in reason
