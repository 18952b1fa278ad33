"""Released labels and sums: draws have the stated distributions, and debiasing is exact.

`data/labels.csv` holds values computed in extended precision by independent code.
"""

import csv
import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.special import expit

from privcore import DomainError
from privcore.labels.learning.release import (
    debiased_proportion,
    debiased_variance,
    form_bags,
    geometric_sums,
    geometric_variance,
    laplace_sums,
    laplace_variance,
    randomized_response,
    release,
)

TABLE = Path(__file__).parents[1] / "data" / "labels.csv"
EPSILONS = (2.0**-4, 0.25, 1.0, 4.0, 32.0, 700.0)
EXACT = 1e-12  # a few roundings
ORACLE = 1e-9  # accurate digits of the table
DRAWS = 200_000
SPREAD = 5.0  # standard errors; the seeds are fixed

each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)
each_bag_size = pytest.mark.parametrize("k", [1, 2, 8])


def kernel(k: int, s: int, epsilon: float) -> list[mp.mpf]:
    """Return the distribution of s with clipped two-sided geometric noise, summed from its definition."""
    with mp.workdps(400):
        r = mp.exp(-mp.mpf(epsilon))
        inside = [(1 - r) / (1 + r) * r ** abs(u - s) for u in range(k + 1)]
        # The mass at u and beyond is a geometric series.
        inside[0], inside[k] = r**s / (1 + r), r ** (k - s) / (1 + r)
        assert mp.almosteq(sum(inside), 1, 1e-300)
        return inside


def oracle_rows(*measures: str) -> list[dict[str, str]]:
    with TABLE.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["measure"] in measures]
    assert rows, measures
    return rows


@each_epsilon
@each_bag_size
def test_a_debiased_proportion_is_right_on_average_whatever_the_true_sum(k: int, epsilon: float) -> None:
    values = debiased_proportion(np.arange(k + 1), k, epsilon)
    for s in range(k + 1):
        law = kernel(k, s, epsilon)
        mean = mp.fsum(p * mp.mpf(float(v)) for p, v in zip(law, values, strict=True))
        assert abs(mean - mp.mpf(s) / k) <= EXACT * (1.0 + float(np.abs(values).max())), s


def test_the_correction_as_it_is_printed_would_be_wrong_for_every_bag_but_those_of_one() -> None:
    k, s, epsilon = 8, 1, 0.25
    printed = np.arange(k + 1) / k
    printed[[0, k]] += np.array([-1.0, 1.0]) / math.expm1(epsilon)
    mean = mp.fsum(p * mp.mpf(float(v)) for p, v in zip(kernel(k, s, epsilon), printed, strict=True))
    assert mean == pytest.approx(-0.92285, abs=1e-5)
    corrected = debiased_proportion(np.arange(k + 1), k, epsilon)
    mean = mp.fsum(p * mp.mpf(float(v)) for p, v in zip(kernel(k, s, epsilon), corrected, strict=True))
    assert mean == pytest.approx(0.125, abs=EXACT)


@each_epsilon
@each_bag_size
def test_the_variance_of_a_debiased_proportion_is_that_of_its_law(k: int, epsilon: float) -> None:
    found = debiased_variance(np.arange(k + 1), k, epsilon)
    with mp.workdps(400):
        odds = 1 / mp.expm1(mp.mpf(epsilon))
        values = [(mp.mpf(u) + odds * ((u == k) - (u == 0))) / k for u in range(k + 1)]
        for s in range(k + 1):
            law = kernel(k, s, epsilon)
            true = mp.fsum(p * (v - mp.mpf(s) / k) ** 2 for p, v in zip(law, values, strict=True))
            assert float(found[s]) == pytest.approx(float(true), rel=EXACT), s


@each_epsilon
def test_clipping_and_debiasing_together_lower_the_variance(epsilon: float) -> None:
    variances = debiased_variance(np.arange(9), 8, epsilon)
    assert variances.max() <= geometric_variance(8, epsilon) < laplace_variance(8, epsilon)
    assert variances[[0, 8]].max() < 0.75 * geometric_variance(8, epsilon)


@each_epsilon
def test_a_bag_of_one_with_geometric_noise_is_randomized_response(epsilon: float) -> None:
    flip = float(expit(-epsilon))
    for label in (0, 1):
        labels = np.full(DRAWS, label)
        for seed, drawn in enumerate(
            (
                randomized_response(labels, epsilon, np.random.default_rng(1)),
                geometric_sums(labels, 1, epsilon, np.random.default_rng(2)),
            )
        ):
            error = math.sqrt(flip * (1.0 - flip) / DRAWS)
            assert abs(np.mean(drawn != label) - flip) <= SPREAD * error + 1e-300, seed
        assert float(kernel(1, label, epsilon)[1 - label]) == pytest.approx(flip, rel=EXACT)


@pytest.mark.parametrize("s", [0, 2, 8])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_geometric_sums_are_drawn_from_their_law(epsilon: float, s: int) -> None:
    drawn = geometric_sums(np.full(DRAWS, s), 8, epsilon, np.random.default_rng(3))
    shares = np.bincount(drawn, minlength=9) / DRAWS
    for share, p in zip(shares, kernel(8, s, epsilon), strict=True):
        assert abs(share - float(p)) <= SPREAD * math.sqrt(float(p) / DRAWS) + SPREAD / DRAWS


def test_laplace_sums_are_drawn_from_their_law_and_not_clipped() -> None:
    noise = laplace_sums(np.zeros(DRAWS, dtype=np.int64), 0.5, np.random.default_rng(4))
    assert noise.min() < 0.0
    for t in (0.5, 2.0, 6.0):
        beyond = math.exp(-0.5 * t)
        error = math.sqrt(beyond * (1.0 - beyond) / DRAWS)
        assert abs(np.mean(np.abs(noise) > t) - beyond) <= SPREAD * error
        assert abs(np.mean(noise > t) - 0.5 * beyond) <= SPREAD * error
    mean_square = float(np.mean(np.square(noise / 8)))
    # The fourth moment of the noise is 24 scale^4, its squared variance 4 scale^4.
    assert mean_square == pytest.approx(laplace_variance(8, 0.5), rel=SPREAD * math.sqrt(5.0 / DRAWS))


def test_bags_hold_every_example_at_most_once_and_only_a_partial_bag_is_dropped() -> None:
    members = form_bags(1003, 10, np.random.default_rng(5))
    assert members.shape == (100, 10)
    assert len(np.unique(members)) == 1000
    assert members.min() >= 0
    assert members.max() <= 1002


def test_bags_of_sorted_labels_are_mixed() -> None:
    labels = np.repeat([0, 1], 5000)
    drawn = release("llp", labels, 100, math.inf, np.random.default_rng(6))
    assert 0.25 < drawn.targets.min() < drawn.targets.max() < 0.75


@pytest.mark.parametrize("mechanism", ["rr", "llp", "llp-laplace", "llp-geometric"])
def test_the_largest_epsilon_releases_the_proportions_themselves(mechanism: str) -> None:
    labels = np.random.default_rng(7).integers(0, 2, 1000)
    k = 1 if mechanism == "rr" else 8
    drawn = release(mechanism, labels, k, 700.0, np.random.default_rng(8))
    assert drawn.members.shape == (1000 // k, k)
    assert drawn.targets == pytest.approx(labels[drawn.members].mean(axis=1), abs=0.02)


@pytest.mark.parametrize("mechanism", ["rr", "llp-laplace", "llp-geometric"])
def test_the_smallest_epsilons_give_large_targets_and_never_nan(mechanism: str) -> None:
    labels = np.random.default_rng(9).integers(0, 2, 1000)
    for epsilon in (1e-3, 1e-6, 1e-100, 1e-300):
        drawn = release(mechanism, labels, 1, epsilon, np.random.default_rng(10))
        assert np.isfinite(drawn.targets).all()
        assert np.abs(drawn.targets).max() >= 0.5 / epsilon
    assert geometric_variance(8, 1e-300) == math.inf
    assert laplace_variance(8, 1e-300) == math.inf


def test_a_seed_determines_a_release() -> None:
    labels = np.random.default_rng(11).integers(0, 2, 100)
    one, other = (release("llp-laplace", labels, 3, 1.0, np.random.default_rng(12)) for _ in range(2))
    assert one.targets.tolist() == other.targets.tolist()
    assert one.members.tolist() == other.members.tolist()


def test_what_cannot_be_released_is_refused_in_a_sentence() -> None:
    labels, rng = np.array([0, 1]), np.random.default_rng(13)
    for epsilon in (0.0, -1.0, 701.0, math.nan):
        with pytest.raises(DomainError, match=r"^Expected label_epsilon in \(0, 700\] or inf, got .*\.$"):
            debiased_proportion(labels, 1, epsilon)
        if epsilon != 0.0:  # a fair coin
            with pytest.raises(DomainError, match="label_epsilon"):
                randomized_response(labels, epsilon, rng)
    with pytest.raises(DomainError, match="bag_size"):
        form_bags(10, 0, rng)
    with pytest.raises(ValueError, match=r"got mechanism='none'\.$"):
        release("none", labels, 1, math.inf, rng)


@pytest.mark.parametrize(
    "row",
    oracle_rows(
        "debiased_label_0",
        "debiased_label_1",
        "debiased_var",
        "debiased_prop_at_clip0",
        "debiased_prop_at_clip1",
        "var_debiased_prop",
        "var_unclipped_prop",
        "var_prop",
    ),
    ids=lambda row: row["id"],
)
def test_debiasing_agrees_with_the_table(row: dict[str, str]) -> None:
    epsilon, k = float(row["eps"]), int(row["k"])
    args = json.loads(row["args"] or "{}")
    match row["measure"]:
        case "debiased_label_0" | "debiased_prop_at_clip0":
            found = float(debiased_proportion(0, k, epsilon))
        case "debiased_label_1" | "debiased_prop_at_clip1":
            found = float(debiased_proportion(k, k, epsilon))
        case "debiased_var":
            found = float(debiased_variance(0, k, epsilon))
        case "var_debiased_prop":
            found = float(debiased_variance(args["s"], k, epsilon))
        case "var_unclipped_prop":
            found = geometric_variance(k, epsilon)
        case _:
            found = laplace_variance(k, epsilon)
    assert found == pytest.approx(float(row["value"]), rel=ORACLE)
