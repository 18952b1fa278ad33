"""Quantised digits: accuracy of classifiers, the bound on their accuracy, and the privacy guarantee."""

import math
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from privcore import Answer, DomainError, Point, Status, evaluate
from privcore.membership.discrete.diversity import diversity, diversity_bound
from privcore.membership.experiments import classifier as experiment_quantised
from privcore.membership.experiments import digits as experiment_digits
from privcore.membership.experiments.classifier import MembershipClassifier
from privcore.membership.experiments.digits import CLASSES, CLUSTERED, POOL, TESTED, codes, counts
from privcore.membership.experiments.guarantee import MembershipGuarantee, MembershipPurity, pool
from privcore.membership.experiments.problems import MembershipQuantised, MembershipQuantisedAdvantage
from privcore.membership.experiments.three_layers import classify
from privcore.method import Method

SPREAD = 4.5  # standard errors; the seeds are fixed
PRINTED = 0.5  # of the last digit

# One process trains them all: each number of clusters is compiled once.
pytestmark = [pytest.mark.sampled(10), pytest.mark.xdist_group("membership by training")]

# arXiv:2310.13786v6, Table 1: the diversity of 20, 50 and 100 clusters, and the bound of the advantage.
DIVERSITY = ("4.30", "6.74", "9.20")
TABLE = {1000: (".07", ".11", ".15"), 5000: (".03", ".05", ".07"), 10_000: (".02", ".03", ".05")}


def answered(question: MembershipQuantised | MembershipQuantisedAdvantage, method: Method) -> Answer:
    answer = evaluate(Point(problem=question, method=method))
    assert answer.status is Status.OK, answer
    return answer


def accuracy(clusters: int, records: int, runs: int = 2) -> float:
    question = MembershipQuantised(clusters=clusters, records=records)
    value = answered(question, MembershipClassifier(runs=runs)).value
    assert value is not None
    return value


def purity(clusters: int) -> float:
    return answered(MembershipQuantised(clusters=clusters, records=1), MembershipPurity()).upper


def guaranteed(
    clusters: int, records: int, attributes: str = "cluster-and-label", odds: float = 1.0
) -> Answer:
    question = MembershipQuantisedAdvantage(
        clusters=clusters, records=records, attributes=attributes, odds=odds
    )
    return answered(question, MembershipGuarantee())


# ----------------------------------------------------------------------------------------- the printed table


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("records", TABLE)
def test_the_nine_bounds_of_the_table_follow_from_its_diversities(records: int, column: int) -> None:
    bound = diversity_bound(float(DIVERSITY[column]), records)
    assert bound == pytest.approx(float(TABLE[records][column]), abs=PRINTED * 0.01)


@pytest.mark.parametrize(("clusters", "printed"), [(20, "4.30"), (50, "6.74"), (100, "9.20")])
def test_our_clusters_are_about_as_diverse(clusters: int, printed: str) -> None:
    found = diversity(pool(clusters, "cluster"))[1]
    assert found == pytest.approx(float(printed), rel=0.04)
    assert found <= math.sqrt(clusters - 1)


# ------------------------------------------------------------------------------------------------ the images


def test_the_split_has_every_image_once() -> None:
    pixels, shown = load_digits(return_X_y=True)
    assert len(shown) == CLUSTERED + POOL + TESTED
    raw = codes(0)
    assert raw.centres.shape == (POOL + TESTED, 64)
    ours = {
        (row.tobytes(), digit)
        for row, digit in zip(raw.centres, (*raw.pool_digits, *raw.tested_digits), strict=True)
    }
    theirs = {
        (row.tobytes(), digit) for row, digit in zip((pixels / 16.0).astype(np.float32), shown, strict=True)
    }
    assert ours < theirs
    assert len(theirs) - len(ours) == CLUSTERED


@pytest.mark.parametrize("clusters", [1, 10, 100])
def test_every_image_has_the_code_of_the_closest_centre(clusters: int) -> None:
    raw, quantised = codes(0), codes(clusters)
    squares = ((raw.centres[:, None, :] - quantised.centres[None, :, :]) ** 2).sum(axis=2)
    found = np.concatenate([quantised.pool, quantised.tested])
    assert np.all(squares[np.arange(len(found)), found] <= squares.min(axis=1) + 1e-4)


@pytest.mark.thorough
def test_clusters_and_training_have_the_same_bits_on_one_core_and_on_all() -> None:
    assert len({hashes(one_core=one_core) for one_core in (False, True)}) == 1


def hashes(*, one_core: bool) -> str:
    """Hashes of the clusters, and of the logits of a short training on raw images."""
    confine = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])" if one_core else ""
    done = subprocess.run(
        [sys.executable, "-c", f"import os\n{confine}\n{HASHES}"], capture_output=True, text=True, check=True
    )
    return done.stdout


HASHES = """
import hashlib
import numpy as np
from privcore.membership.experiments import three_layers as experiment_classifier
from privcore.membership.experiments.digits import codes
print(hashlib.sha256(codes(20).centres.tobytes() + codes(20).pool.tobytes()).hexdigest())
experiment_classifier.ITERATIONS = 10
raw = codes(0)
first = experiment_classifier._first_layers((64, 256, 256, 10), np.random.default_rng(1))
inputs, shares = (np.array(part.T, dtype=np.float32, order="C") for part in (raw.centres, raw.cells() / 1000))
logits = experiment_classifier._train(first, inputs, shares)
print(hashlib.sha256(np.asarray(logits).tobytes()).hexdigest())
"""


def test_cells_count_records_by_code_and_digit() -> None:
    quantised = codes(10)
    cells = quantised.cells()
    for code in range(10):
        for digit in range(CLASSES):
            both = (quantised.pool == code) & (quantised.pool_digits == digit)
            assert cells[code, digit] == both.sum()
    assert counts(10, "cluster").sum() == counts(10, "cluster-and-label").sum() == POOL


# ----------------------------------------------------------------------------------------- privacy guarantee


@pytest.mark.thorough
@pytest.mark.parametrize("attributes", ["cluster", "cluster-and-label"])
@pytest.mark.parametrize("odds", [0.8, 1.0, 1.25])
def test_the_guarantee_is_the_advantage_of_the_attack_by_counts(attributes: str, odds: float) -> None:
    """Draws from the empirical distribution: mean of the positive parts, for the worst learner."""
    p = counts(20, attributes) / POOL
    n = 300
    drawn = np.random.default_rng(5).multinomial(n, p, size=4000) / n
    parts = drawn - odds * p if odds >= 1.0 else (odds * p - drawn) / odds
    sums = np.maximum(parts, 0.0).sum(axis=1)
    answer = guaranteed(20, n, attributes, odds)
    error = SPREAD * float(sums.std()) / math.sqrt(len(sums))
    assert answer.lower - error <= sums.mean() <= answer.upper + error
    assert answer.upper - answer.lower <= 1e-10


@pytest.mark.thorough
@pytest.mark.parametrize("clusters", [10, 20, 50, 100])
def test_a_record_with_its_label_is_less_safe_than_the_printed_diversity_says(clusters: int) -> None:
    """The published C is for clusters alone, although the training records have labels."""
    alone, both = (
        diversity(pool(clusters, attributes))[1] for attributes in ("cluster", "cluster-and-label")
    )
    assert 1.05 < both / alone < 1.7
    for records in (100, 1000, 10_000):
        less, more = (
            guaranteed(clusters, records, attributes) for attributes in ("cluster", "cluster-and-label")
        )
        assert less.upper < more.lower
        assert more.upper <= diversity_bound(both, records)
        assert f"C = {both:.4f}" in more.detail


def test_for_many_records_the_guarantee_is_four_fifths_of_the_bound() -> None:
    """The constant is 1 / sqrt(2 pi); that of Cauchy and Schwarz is 1 / 2."""
    c = diversity(pool(10, "cluster-and-label"))[1]
    ratio = guaranteed(10, 10**9).upper / diversity_bound(c, 10**9)
    assert ratio == pytest.approx(math.sqrt(2.0 / math.pi), rel=1e-3)


# --------------------------------------------------------------------------------------------------- accuracy


@pytest.mark.thorough
@pytest.mark.sampled(1)
@pytest.mark.parametrize("clusters", [1, 5, 20])
def test_no_classifier_is_better_than_its_codes_allow(clusters: int) -> None:
    assert accuracy(clusters, 1000) <= purity(clusters)


@pytest.mark.thorough
def test_with_enough_records_a_classifier_reaches_nearly_what_its_codes_allow() -> None:
    assert accuracy(20, 10**6) > purity(20) - 0.03
    assert accuracy(1, 1000) < 0.2
    assert accuracy(20, 10) < accuracy(20, 10**6) - 0.1


def test_purity_is_found_by_trying_all_digits_for_every_code() -> None:
    quantised = codes(5)
    right = sum(
        max(int(((quantised.tested == code) & (quantised.tested_digits == d)).sum()) for d in range(CLASSES))
        for code in range(5)
    )
    assert Fraction(right, TESTED) <= Fraction(purity(5)) < Fraction(right, TESTED) + Fraction(1, 10**15)
    assert purity(0) == 1.0
    assert purity(20) < 0.9


def test_records_with_multiplicities_train_as_the_records_one_by_one() -> None:
    """Training on repeated inputs has the same gradient as training on counts, so the classes are equal."""
    inputs = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=np.float32)
    number = np.array([[3, 1], [0, 2], [2, 3]])
    one_by_one = [(i, k) for i in range(3) for k in range(2) for _ in range(number[i, k])]
    singles = np.zeros((len(one_by_one), 2), dtype=np.int64)
    singles[np.arange(len(one_by_one)), [k for _, k in one_by_one]] = 1
    together = classify(inputs, number, np.random.default_rng(3))
    apart = classify(inputs[[i for i, _ in one_by_one]], singles, np.random.default_rng(3))
    assert together is not None
    assert apart is not None
    assert together.tolist() == [0, 1, 1]
    assert apart.tolist() == [together[i] for i, _ in one_by_one]


def test_the_training_accuracy_is_that_of_the_majority_of_every_cell() -> None:
    """At the shares of the pool, the best fit is the most frequent digit of each cluster."""
    answer = answered(MembershipQuantised(clusters=20, records=10**9), MembershipClassifier())
    found = re.fullmatch(r"2 runs, standard error \d\.\d{4}, training accuracy (\d\.\d{4})", answer.detail)
    assert found is not None
    assert float(found[1]) == pytest.approx(codes(20).cells().max(axis=1).sum() / POOL, abs=0.01)


# ---------------------------------------------------------------------------------------------------- misuse


def test_raw_images_have_no_guarantee() -> None:
    with pytest.raises(DomainError, match=r"^Expected clusters >= 1 for quantised images, got clusters=0\.$"):
        MembershipQuantisedAdvantage(clusters=0, records=10)


def test_training_that_left_single_precision_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privcore.membership.experiments.three_layers.classify", lambda *_: None)
    question = MembershipQuantised(clusters=5, records=10)
    answer = evaluate(Point(problem=question, method=MembershipClassifier()))
    assert (answer.status, answer.detail) == (Status.FAILED, "Training overflowed single precision.")


def test_without_the_extra_the_methods_decline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_digits, "_bundled", lambda: False)
    monkeypatch.setattr(experiment_quantised, "_can_learn", lambda: False)
    question = MembershipQuantised(clusters=5, records=10)
    for method in (MembershipPurity(), MembershipClassifier()):
        assert (method.applies(question) or "").endswith("pip install 'privsweep[learn]'.")


# ------------------------------------------------------------------------------------- the size of the paper


@pytest.mark.soak
def test_raw_images_are_classified_as_by_scikit_learn() -> None:
    raw = codes(0)
    rng = np.random.default_rng(1)
    scores = []
    for run in range(3):
        drawn = rng.integers(POOL, size=1000)
        other = MLPClassifier(
            (256, 256), learning_rate_init=0.01, batch_size=1000, max_iter=500, random_state=run
        )
        other.fit(raw.centres[raw.pool[drawn]], raw.pool_digits[drawn])
        scores.append(other.score(raw.centres[raw.tested], raw.tested_digits))
    assert accuracy(0, 1000, runs=3) == pytest.approx(float(np.mean(scores)), abs=0.02)


@pytest.mark.soak
def test_published_accuracies_are_above_what_clusters_allow() -> None:
    """Table 1 has .963 for 20 clusters and .968 for 50, which is more than the purity of our clusters."""
    for clusters, printed in ((20, 0.963), (50, 0.968)):
        assert accuracy(clusters, 1000, runs=10) <= purity(clusters) < printed
