"""Learning from released labels: the data sets, the loss, the noise in its gradients, and the models."""

import csv
import itertools
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, xlogy
from sklearn.metrics import log_loss, roc_auc_score

from privcore import Answer, DomainError, Point, Status, evaluate
from privcore.labels.learning import trained, training
from privcore.labels.learning.datasets import SIZES, load
from privcore.labels.learning.gradient import noise_gradient_square, proportion_gradient
from privcore.labels.learning.release import (
    Release,
    debiased_proportion,
    debiased_variance,
    geometric_sums,
    geometric_variance,
    laplace_sums,
    laplace_variance,
)
from privcore.labels.learning.trained import LabelsTrained
from privcore.labels.learning.utility_problems import LabelLearning, LabelLearningLoss

TABLE = Path(__file__).parents[1] / "data" / "labels.csv"
SPREAD = 4.0  # standard errors; the seeds are fixed

# All trainings run in one process, which compiles once for each shape.
pytestmark = [pytest.mark.sampled(4), pytest.mark.xdist_group("learning")]

each_data_set = pytest.mark.parametrize("name", SIZES)

Floats = NDArray[np.float64]


@cache
def learned(
    data: str,
    mechanism: str = "llp",
    bag_size: int = 1,
    label_epsilon: float = math.inf,
    model: str = "logistic",
    trials: int = 3,
) -> Answer:
    asked = LabelLearning(
        data=data, mechanism=mechanism, bag_size=bag_size, label_epsilon=label_epsilon, model=model
    )
    answer = evaluate(Point(problem=asked, method=LabelsTrained(trials=trials)))
    assert answer.status is Status.OK, answer
    return answer


def auc(data: str, *asked: str | float, **more: str | int) -> float:
    value = learned(data, *asked, **more).value
    assert value is not None
    return value


# ----------------------------------------------------------------------------------------------- the data


@each_data_set
def test_a_data_set_has_the_sizes_and_the_kinds_that_are_declared(name: str) -> None:
    data = load(name)
    train, test, dimension = SIZES[name]
    assert data.train_features.shape == (train, dimension)
    assert data.test_features.shape == (test, dimension)
    assert data.train_features.dtype == data.test_features.dtype == np.float32
    for labels, count in ((data.train_labels, train), (data.test_labels, test)):
        assert labels.shape == (count,)
        assert set(np.unique(labels)) == {0, 1}
    assert np.isfinite(data.train_features).all()
    assert np.isfinite(data.test_features).all()


@each_data_set
def test_the_features_of_the_training_split_are_standardised(name: str) -> None:
    features = load(name).train_features.astype(np.float64)
    deviations = features.std(axis=0)
    varied = deviations > 0.0  # some pixels of the digits are always white
    assert np.abs(features.mean(axis=0)).max() < 0.02
    assert np.abs(deviations[varied] - 1.0).max() < 0.02


@pytest.mark.parametrize(
    ("name", "b", "s", "base_rate", "best_auc"),
    [("higgs-like", 0.2132, 2.2453, 0.5300, 0.8800), ("kdd-like", -3.661, 1.1815, 0.04450, 0.789)],
)
def test_a_stand_in_has_its_law(name: str, b: float, s: float, base_rate: float, best_auc: float) -> None:
    data = load(name)
    logits = b + s / math.sqrt(50) * data.test_features.sum(axis=1, dtype=np.float64)
    eta = expit(logits)
    count = len(eta)
    assert logits.mean() == pytest.approx(b, abs=SPREAD * s / math.sqrt(count))
    assert logits.std() == pytest.approx(s, rel=SPREAD / math.sqrt(2 * count))
    assert abs(np.mean(data.test_labels - eta)) <= SPREAD * math.sqrt(np.mean(eta * (1 - eta)) / count)
    assert data.train_labels.mean() == pytest.approx(base_rate, rel=0.03)
    assert roc_auc_score(data.test_labels, logits) == pytest.approx(best_auc, abs=0.01)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"mechanism": "none"}, "Expected a mechanism that releases labels or sums, got .*none"),
        ({"mechanism": "rr"}, "Expected a finite label_epsilon"),
        ({"mechanism": "rr", "label_epsilon": 1.0, "bag_size": 2}, "Expected bag_size=1"),
        ({"mechanism": "llp", "label_epsilon": 1.0}, "Expected label_epsilon=inf"),
        ({"mechanism": "llp-laplace", "bag_size": 4}, "Expected a finite label_epsilon"),
        ({"mechanism": "llp-geometric", "bag_size": 4}, "Expected a finite label_epsilon"),
        ({"mechanism": "llp", "bag_size": 107}, "Expected bag_size <= 106, a quarter of .* breast-cancer"),
        ({"mechanism": "llp", "data": "higgs"}, "Expected data in"),
        ({"mechanism": "llp", "model": "forest"}, "Expected model in"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_a_sentence(
    fields: dict[str, str | float], sentence: str
) -> None:
    with pytest.raises(DomainError, match=rf"^{sentence}.*\.$"):
        LabelLearning.from_fields({"data": "breast-cancer"} | fields)


# ------------------------------------------------------------------------------------ noise and gradients


def laplace(
    sums: NDArray[np.int64], k: int, epsilon: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return noisy proportions, with the variance of each."""
    return laplace_sums(sums, epsilon, rng) / k, np.full(len(sums), laplace_variance(k, epsilon))


def unclipped(
    sums: NDArray[np.int64], k: int, epsilon: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    success = -math.expm1(-epsilon)
    noise = rng.geometric(success, len(sums)) - rng.geometric(success, len(sums))
    return (sums + noise) / k, np.full(len(sums), geometric_variance(k, epsilon))


def clipped(
    sums: NDArray[np.int64], k: int, epsilon: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    noisy = geometric_sums(sums, k, epsilon, rng)
    return debiased_proportion(noisy, k, epsilon), debiased_variance(sums, k, epsilon)


Noise = Callable[[NDArray[np.int64], int, float, np.random.Generator], tuple[Floats, Floats]]


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("noise", [laplace, unclipped, clipped])
def test_noise_leaves_the_mean_gradient_alone_and_adds_the_stated_term_to_its_square(
    noise: Noise, epsilon: float
) -> None:
    rng = np.random.default_rng(1)
    bags, k, weights = 200_000, 4, np.array([0.7, -0.4, 0.2])
    features = rng.standard_normal((bags, k, 3))
    sums = (rng.random((bags, k)) < expit(features.sum(axis=-1))).sum(axis=1)
    noisy, variances = noise(sums, k, epsilon, rng)
    clean = proportion_gradient(weights, features, sums / k)
    with_noise = proportion_gradient(weights, features, noisy)

    moved = with_noise - clean
    assert np.all(np.abs(moved.mean(axis=0)) <= SPREAD * moved.std(axis=0) / math.sqrt(bags))

    gained = np.square(with_noise).sum(axis=1) - np.square(clean).sum(axis=1)
    expected = noise_gradient_square(weights, features, variances)
    assert abs(gained.mean() - expected) <= SPREAD * gained.std() / math.sqrt(bags)
    assert expected > 3.0 * SPREAD * gained.std() / math.sqrt(bags)  # larger than its standard error


def test_the_mean_square_of_the_gradient_agrees_with_the_table() -> None:
    with TABLE.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["measure"] == "E_grad_sq"]
    for row in rows:
        args = json.loads(row["args"])
        etas = {"fixed:v3": (0.2, 0.5, 0.8)}[row["prior"]]
        features = np.array(args["x"], dtype=float)[:, None]
        total = 0.0
        for labels in itertools.product((0, 1), repeat=len(etas)):
            chance = math.prod(eta if label else 1.0 - eta for eta, label in zip(etas, labels, strict=True))
            gradient = proportion_gradient([args["theta"]], features, np.mean(labels))
            total += chance * float(gradient @ gradient)
        assert total == pytest.approx(float(row["value"]), rel=1e-9), row["id"]
    assert rows


@pytest.mark.parametrize("k", [1, 3])
def test_the_loss_that_is_trained_on_has_the_gradient_of_the_theory(k: int) -> None:
    import jax

    rng = np.random.default_rng(2)
    weights, features = rng.standard_normal(4), rng.standard_normal((5, k, 4))
    targets = np.array([-3.0, 0.0, 0.4, 1.0, 7.5])
    parts = [(weights[:, None].astype(np.float32), np.zeros(1, dtype=np.float32))]
    found = jax.grad(training.proportion_loss)(parts, features.astype(np.float32), targets)
    expected = proportion_gradient(weights, features, targets).mean(axis=0)
    assert np.asarray(found[0][0])[:, 0] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_predictions_keep_away_from_0_and_1_where_noisy_targets_would_reward_them() -> None:
    certain = [(np.full((1, 1), 1e4, dtype=np.float32), np.zeros(1, dtype=np.float32))]
    loss = float(training.proportion_loss(certain, np.ones((1, 1, 1), dtype=np.float32), np.array([2.0])))
    assert loss == pytest.approx(math.log(1e-6), rel=0.05)


# ------------------------------------------------------------------------------------ the trained models


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "b"), [("higgs-like", 0.2132), ("kdd-like", -3.661)])
def test_clean_labels_teach_as_much_as_the_law_itself_knows(name: str, b: float) -> None:
    data = load(name)
    best = float(roc_auc_score(data.test_labels, data.test_features.sum(axis=1)))
    assert best - 0.004 <= auc(name) <= best + 0.002


@pytest.mark.thorough
def test_a_smaller_epsilon_teaches_less() -> None:
    values = [auc("higgs-like", "rr", 1, epsilon) for epsilon in (0.0625, 0.25, 1.0, 4.0)]
    assert values == sorted(values)
    assert values[0] < 0.75
    assert values[-1] > 0.87


@pytest.mark.thorough
def test_larger_bags_teach_less() -> None:
    values = [auc("higgs-like", "llp", k) for k in (1, 16, 64, 256)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.85


def test_epsilon_1_and_bags_of_8_teach_the_same_and_noisy_bags_a_little_less() -> None:
    noisy_labels, bags = auc("higgs-like", "rr", 1, 1.0), auc("higgs-like", "llp", 8)
    geometric = auc("higgs-like", "llp-geometric", 8, 1.0)
    laplace = auc("higgs-like", "llp-laplace", 8, 1.0)
    assert noisy_labels == pytest.approx(bags, abs=0.005)
    assert min(noisy_labels, bags) - 0.02 < min(geometric, laplace)
    assert max(geometric, laplace) < bags
    assert geometric == pytest.approx(laplace, abs=0.005)


def test_a_network_learns_from_bags_of_digits_what_is_not_linear() -> None:
    assert auc("digits", "llp", 4, model="mlp") > auc("digits", "llp", 4) + 0.03
    assert auc("digits", "llp", 4, model="mlp") > 0.98


def test_real_data_are_learned_from_noisy_labels() -> None:
    assert auc("breast-cancer") > 0.99
    assert auc("breast-cancer", "rr", 1, 2.0) > 0.97


def test_noise_without_end_teaches_nothing() -> None:
    assert auc("digits", "rr", 1, 1e-6, trials=10) == pytest.approx(0.5, abs=0.15)


def test_the_detail_tells_the_trials_their_spread_and_the_learning_rates() -> None:
    detail = learned("digits", "llp", 4, trials=2).detail
    assert re.fullmatch(r"2 trials, standard error 0\.0\d{3}, learning rate 0\.\d+(, 0\.\d+)*", detail), (
        detail
    )


def test_trials_differ_in_their_release_and_a_seed_determines_all() -> None:
    data = load("digits")
    scores = []
    for seed in (1, 2, 1):
        rng = np.random.default_rng(seed)
        members = rng.permutation(1348)[:, None]
        clean = Release(members=members, targets=data.train_labels[members[:, 0]].astype(float))
        found = training.train_and_score("mlp", data.train_features, clean, data.test_features, rng)
        assert found is not None
        scores.append(found[0])
    assert np.array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], scores[1])


def test_a_training_that_diverges_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "LEARNING_RATES", (1e38, 3e38, 3e38))
    asked = LabelLearning(data="breast-cancer", mechanism="llp", model="mlp")
    answer = evaluate(Point(problem=asked, method=LabelsTrained(trials=2)))
    assert (answer.status, answer.detail) == (Status.FAILED, "Training diverged at every learning rate.")


def test_the_loss_of_a_model_is_the_cross_entropy_of_its_probabilities() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(0.0, 4.0, 200)
    labels = rng.integers(0, 2, 200)
    asked = LabelLearningLoss(data="digits", mechanism="llp")
    assert trained._score(asked, labels, logits) == pytest.approx(log_loss(labels, expit(logits)), rel=1e-12)
    assert math.isfinite(trained._score(asked, labels, 1000.0 * logits))


@pytest.mark.thorough
def test_a_model_of_clean_labels_has_nearly_the_entropy_of_the_labels() -> None:
    """The expected loss of any model is at least the entropy of a label given its features."""
    asked = LabelLearningLoss(data="kdd-like", mechanism="llp")
    answer = evaluate(Point(problem=asked, method=LabelsTrained(trials=2)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    eta = expit(-3.661 + 1.1815 * nodes)
    entropy = -float(weights @ (xlogy(eta, eta) + xlogy(1.0 - eta, 1.0 - eta))) / math.sqrt(2.0 * math.pi)
    assert answer.value is not None
    # the test set of the stand-in is one draw, whose mean loss has a standard error of 0.006
    assert -0.02 < answer.value - entropy < 0.03


def test_without_the_packages_the_method_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = LabelLearning(data="breast-cancer", mechanism="llp")
    assert LabelsTrained().applies(asked) is None
    trained._can_learn.cache_clear()
    monkeypatch.setattr(trained, "find_spec", lambda package: None)
    try:
        reason = LabelsTrained().applies(asked)
    finally:
        trained._can_learn.cache_clear()
    assert reason == "Training needs JAX, optax and scikit-learn: pip install 'privsweep[learn]'."


def test_privcore_is_imported_without_them() -> None:
    heavy = "{'jax', 'optax', 'sklearn'} & sys.modules.keys()"
    command = f"import sys, privcore, privcore.labels.learning.trained; assert not {heavy}, {heavy}"
    subprocess.run([sys.executable, "-c", command], check=True)


@pytest.mark.thorough
def test_another_process_gets_the_same_bits_even_where_jax_is_asked_for_doubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    here = learned("digits", "llp-geometric", 4, 1.0, model="mlp", trials=2)
    command = (
        "from privcore import Point, evaluate\n"
        "from privcore.labels.learning.utility_problems import LabelLearning\n"
        "from privcore.labels.learning.trained import LabelsTrained\n"
        "fields = {'mechanism': 'llp-geometric', 'bag_size': 4, 'label_epsilon': 1.0, 'model': 'mlp'}\n"
        "asked = LabelLearning(data='digits', **fields)\n"
        "print(repr(evaluate(Point(problem=asked, method=LabelsTrained(trials=2)))))"
    )
    there = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == repr(here)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "mechanism", "k", "epsilon", "expected"),
    [
        ("higgs-like", "rr", 1, 0.25, 0.845),
        ("higgs-like", "rr", 1, 0.5, 0.8716),
        ("higgs-like", "rr", 1, 1.0, 0.8801),
        ("higgs-like", "rr", 1, 2.0, 0.8816),
        ("higgs-like", "llp", 16, math.inf, 0.8768),
        ("higgs-like", "llp", 64, math.inf, 0.8607),
        ("higgs-like", "llp", 128, math.inf, 0.835),
        ("higgs-like", "llp-geometric", 8, 1.0, 0.8755),
        ("higgs-like", "llp-geometric", 8, 4.0, 0.8790),
        ("kdd-like", "rr", 1, 1.0, 0.753),
        ("kdd-like", "rr", 1, 4.0, 0.7866),
        ("kdd-like", "llp", 8, math.inf, 0.7815),
        ("kdd-like", "llp", 64, math.inf, 0.726),
    ],
)
def test_the_auc_is_near_that_of_another_program(
    name: str, mechanism: str, k: int, epsilon: float, expected: float
) -> None:
    """The other program used the same distributions, another test set, and the best learning rate on it."""
    assert auc(name, mechanism, k, epsilon, trials=20) == pytest.approx(expected, abs=0.015)
