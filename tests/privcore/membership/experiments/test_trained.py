"""Learners that overfit: shares of fitted records against simulations, proofs and other programs' tables."""

import math
import re
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from privcore import Answer, DomainError, Point, Status, evaluate
from privcore.membership.experiments import network as experiment_network
from privcore.membership.experiments import trained as experiment_trained
from privcore.membership.experiments.network import NetworkRun, first_weights, residuals, training_records
from privcore.membership.experiments.noise import MembershipNoise, noise_share
from privcore.membership.experiments.problems import MembershipFit
from privcore.membership.experiments.residuals import Residuals, linear, nearest, sphere
from privcore.membership.experiments.trained import MembershipTrained
from privcore.membership.learner.overfitting import MembershipOverfitting
from tests.privcore.draws import problem

SPREAD = 4.5  # standard errors; the seeds are fixed
PRINTED = 0.5  # of the last digit
LEVELS = (1e-6, 1e-4, 1e-2)
NETWORK = {"width": 256, "iterations": 400}
SMALL = NetworkRun(coordinates=4, records=40, width=256, noise=0.1, stopping_loss=0.0, number=0)

# One process trains the networks: each shape is compiled once.
pytestmark = [pytest.mark.sampled(16), pytest.mark.xdist_group("membership by training")]

Floats = NDArray[np.float64]


def asked(learner: str, **fields: float | str) -> MembershipFit:
    usual: dict[str, float | str] = {"coordinates": 4, "records": 40, "loss_level": 1e-4, "tested": "fresh"}
    return MembershipFit.from_fields(usual | {"learner": learner} | fields)


def trained(question: MembershipFit, runs: int = 3) -> Answer:
    answer = evaluate(Point(problem=question, method=MembershipTrained(runs=runs)))
    assert answer.status is Status.OK, answer
    return answer


def share(question: MembershipFit, runs: int = 3) -> float:
    value = trained(question, runs).value
    assert value is not None
    return value


def standard_error(answer: Answer) -> float:
    found = re.match(r"\d+ runs, standard error (\S+), ", answer.detail)
    assert found is not None
    return float(found[1])


def binomial_error(p: float, number: int) -> float:
    return math.sqrt(max(p * (1.0 - p), 1.0 / number) / number)


# --------------------------------------------------------- other programs: training data, noise, a few lines

# One run each with 1000 training and 10000 fresh records, by numpy.linalg.lstsq: shares at 1e-6, 1e-4, 1e-2.
LINEAR = {
    10: (".005 .086 .67", ".0079 .0822 .677"),
    500: (".012 .126 .879", ".0054 .0571 .518"),
    950: (".048 .384 1", ".001 .014 .137"),
    1000: ("1 1 1", ".0001 .0017 .022"),
    1200: ("1 1 1", ".0036 .031 .312"),
    2000: ("1 1 1", ".0061 .052 .479"),
}
NEAREST = {
    10: ".0017 .022 .216",
    100: ".0021 .021 .210",
    1000: ".0042 .041 .386",
    2000: ".0059 .053 .435",
}


def assert_near(printed: str, question: MembershipFit, records: int, spread: float) -> None:
    """The printed share is from one run: it has a binomial error, and the error of one draw of the noise."""
    digits = len(printed.partition(".")[2])
    answer = trained(question, runs=4)
    assert answer.value is not None
    error = math.hypot(
        binomial_error(answer.value, records), 2.0 * standard_error(answer), spread * answer.value
    )
    assert abs(float(printed) - answer.value) <= SPREAD * error + PRINTED * 10.0**-digits


def assert_table_row(learner: str, d: int, tested: str, row: str, spread: float) -> None:
    for level, printed in zip(LEVELS, row.split(), strict=True):
        question = asked(learner, coordinates=d, records=1000, loss_level=level, tested=tested)
        assert_near(printed, question, 1000 if tested == "train" else 10_000, spread)


@pytest.mark.parametrize("d", [10, *(pytest.param(d, marks=pytest.mark.soak) for d in LINEAR if d > 10)])
def test_least_squares_fit_as_in_the_table_of_another_program(d: int) -> None:
    train, fresh = LINEAR[d]
    # The error of the coefficients is that of one draw of the noise, which matters most near d = n.
    spread = {950: 0.06, 1000: 0.25}.get(d, 0.02)
    assert_table_row("linear", d, "train", train, spread)
    assert_table_row("linear", d, "fresh", fresh, spread)


@pytest.mark.parametrize(
    "d", [10, 100, *(pytest.param(d, marks=pytest.mark.soak) for d in NEAREST if d > 100)]
)
def test_the_nearest_neighbour_fits_as_in_the_table_of_another_program(d: int) -> None:
    assert_table_row("nearest", d, "fresh", NEAREST[d], 0.0)
    assert_table_row("nearest", d, "train", "1 1 1", 0.0)


@pytest.mark.parametrize(("d", "n"), [(3, 30), (12, 30), (30, 30), (45, 30)])
def test_least_squares_agree_with_a_simulation_that_draws_the_noise(d: int, n: int) -> None:
    rng = np.random.default_rng(d)
    shares = np.zeros((300, 2))
    for row in shares:
        x, fresh = sphere(rng, n, d), sphere(rng, 200, d)
        y = math.pi * x[:, 0] + 0.1 * rng.standard_normal(n)
        fitted = np.linalg.lstsq(x, y, rcond=None)[0]
        errors = fresh @ fitted - math.pi * fresh[:, 0] - 0.1 * rng.standard_normal(200)
        row[:] = np.mean((x @ fitted - y) ** 2 <= 1e-3), np.mean(errors**2 <= 1e-3)
    for column, tested in enumerate(("train", "fresh")):
        found = trained(asked("linear", coordinates=d, records=n, loss_level=1e-3, tested=tested), runs=30)
        assert found.value is not None
        error = math.hypot(float(shares[:, column].std()) / math.sqrt(300), standard_error(found))
        assert abs(found.value - shares[:, column].mean()) <= SPREAD * error + 1e-6


def test_the_nearest_neighbour_agrees_with_a_simulation_that_draws_the_noise() -> None:
    rng = np.random.default_rng(7)
    shares = []
    for _ in range(200):
        x, fresh = sphere(rng, 50, 3), sphere(rng, 500, 3)
        y = np.sin(math.pi * x[:, 0]) + 0.1 * rng.standard_normal(50)
        found = y[cKDTree(x).query(fresh)[1]]
        shares.append(
            np.mean((found - np.sin(math.pi * fresh[:, 0]) - 0.1 * rng.standard_normal(500)) ** 2 <= 1e-2)
        )
    answer = trained(asked("nearest", coordinates=3, records=50, loss_level=1e-2), runs=30)
    assert answer.value is not None
    error = math.hypot(float(np.std(shares)) / math.sqrt(200), standard_error(answer))
    assert abs(answer.value - float(np.mean(shares))) <= SPREAD * error


def adam_by_hand(run: NetworkRun, iterations: int) -> Floats:
    """Residuals of the training records after Adam, with gradients by hand and in double precision."""
    x, y = (part.astype(float) for part in training_records(run))
    x = x[:-1].T
    hidden, a, c = (np.asarray(part, dtype=float) for part in first_weights(run))
    w, b = hidden[:, :-1].T, hidden[:, -1]
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in (w, b, a, c)]
    for t in range(1, iterations + 1):
        z = x @ w + b
        r = 2.0 / len(y) * (np.maximum(z, 0.0) @ a + c - y)
        back = np.outer(r, a) * (z > 0.0)
        slopes = (x.T @ back, back.sum(axis=0), np.maximum(z, 0.0).T @ r, r.sum())
        moments = [
            (0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g) for (m, v), g in zip(moments, slopes, strict=True)
        ]
        w, b, a, c = (
            part - 0.1 * (m / (1.0 - 0.9**t)) / (np.sqrt(v / (1.0 - 0.999**t)) + 1e-8)
            for part, (m, v) in zip((w, b, a, c), moments, strict=True)
        )
    return np.asarray(np.maximum(x @ w + b, 0.0) @ a + c - y)


@pytest.mark.parametrize("iterations", [0, 1, 10, 30])
def test_a_network_is_trained_as_by_gradients_by_hand(iterations: int) -> None:
    fitted, _ = residuals(SMALL, iterations)
    by_hand = adam_by_hand(SMALL, iterations)
    assert np.abs(fitted.mean - by_hand).max() <= 2e-3 * np.abs(by_hand).max()


# ---------------------------------------------------------------------------------------------- proved bounds


@pytest.mark.parametrize(
    ("level", "printed"),
    [
        (1e-6, ".00798"),
        (1e-5, ".02523"),
        (1e-4, ".07966"),
        (1e-3, ".24817"),
        (1e-2, ".68269"),
        (0.1, ".99843"),
    ],
)
def test_the_share_of_the_noise_is_as_computed_elsewhere(level: float, printed: str) -> None:
    assert noise_share(level, 0.1) == pytest.approx(float(printed), abs=PRINTED * 1e-5)


@pytest.mark.parametrize(("level", "printed"), [(1e-6, ".00564"), (1e-4, ".0564"), (1e-2, ".52")])
def test_so_is_that_of_two_noises(level: float, printed: str) -> None:
    answer = evaluate(Point(problem=asked("nearest", loss_level=level), method=MembershipNoise()))
    digits = len(printed.partition(".")[2])
    assert answer.upper == pytest.approx(float(printed), abs=PRINTED * 10.0**-digits)


@pytest.mark.parametrize("learner", ["linear", "nearest", "network"])
@pytest.mark.parametrize("d", [4, 40])
def test_no_learner_beats_what_the_noise_proves(learner: str, d: int) -> None:
    fields = NETWORK if learner == "network" else {}
    for level in (1e-8, 1e-6, 1e-4, 1e-2, 1.0):
        for tested in ("train", "fresh"):
            question = asked(learner, coordinates=d, loss_level=level, tested=tested, **fields)
            proved = evaluate(Point(problem=question, method=MembershipNoise()))
            if proved.ok:
                assert proved.lower * (1.0 - 1e-5) <= share(question) <= proved.upper * (1.0 + 1e-5)


def test_more_features_than_records_are_told_apart_and_fewer_hardly() -> None:
    """The published claim for any dimension holds for d >= n."""

    def gap(d: int) -> float:
        return share(asked("linear", coordinates=d, tested="train")) - share(asked("linear", coordinates=d))

    assert gap(40) > 0.9
    assert gap(4) < 0.02


def test_a_network_that_overfits_has_no_security() -> None:
    fields = NETWORK | {"coordinates": 10, "iterations": 1000, "stopping_loss": 5e-7, "loss_level": 1e-5}
    fitted = share(asked("network", tested="train", **fields))
    fresh = share(asked("network", tested="fresh", **fields))
    assert fitted >= 0.95
    assert fresh < noise_share(1e-5, 0.1)
    question = problem("membership-overfitting-security", unfitted_share=1.0 - fitted, fresh_share=fresh)
    bound = evaluate(Point(problem=question, method=MembershipOverfitting())).upper
    assert bound == pytest.approx(1.0 - fitted + fresh)
    assert bound < 0.08


# ----------------------------------------------------------------------------------------- runs and stopping


def test_a_training_that_goes_on_is_the_training_of_that_length() -> None:
    def fitted(*lengths: int) -> list[bytes]:
        residuals.cache_clear()
        experiment_network._state.cache_clear()
        found = {length: residuals(SMALL, length)[0].mean.tobytes() for length in lengths}
        return [found[length] for length in sorted(lengths)]

    alone = [fitted(length)[0] for length in (100, 300, 600)]
    assert fitted(100, 300, 600) == alone
    assert fitted(600, 300, 100) == alone
    assert len(set(alone)) == 3


@pytest.mark.thorough
def test_training_has_the_same_bits_on_one_core_and_on_all() -> None:
    program = """
import hashlib, os, sys
if sys.argv[1] == "one":
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from privcore.membership.experiments.network import NetworkRun, residuals
run = NetworkRun(coordinates=10, records=1000, width=1024, noise=0.1, stopping_loss=0.0, number=0)
found = residuals(run, 10)
print(hashlib.sha256(b"".join(part.mean.tobytes() for part in found)).hexdigest())
"""
    command = [sys.executable, "-c", program]
    seen = {
        subprocess.run([*command, cores], capture_output=True, text=True, check=True).stdout
        for cores in ("one", "all")
    }
    assert len(seen) == 1


def test_a_training_stops_when_its_mean_loss_is_small_and_then_stays() -> None:
    run = SMALL._replace(stopping_loss=1e-4)
    stopped = residuals(run, 2000)[0].mean
    assert np.square(stopped).mean() <= 1e-4 * (1.0 + 1e-3)
    steps = int(experiment_network._state(run, 2000).count)
    assert 0 < steps < 1000
    assert np.array_equal(stopped, residuals(run, 1000)[0].mean)
    assert np.square(residuals(run, steps - 1)[0].mean).mean() > 1e-4


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5])
def test_what_stopped_fits_as_many_records_as_markov_promises(alpha: float) -> None:
    """Proposition 10: stopping at eta makes (eta / alpha, 1 - alpha)-overfitting."""
    fields = NETWORK | {"iterations": 2000, "stopping_loss": 1e-4}
    assert share(asked("network", tested="train", loss_level=1e-4 / alpha, **fields)) >= 1.0 - alpha - 1e-3


@pytest.mark.parametrize("learner", ["linear", "nearest"])
def test_points_that_differ_in_level_and_record_share_their_runs(
    learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Mock(side_effect={"linear": linear, "nearest": nearest}[learner])
    monkeypatch.setattr(experiment_trained, learner, draw)
    fields = {"coordinates": 5, "records": 17}  # asked nowhere else
    for level in LEVELS:
        for tested in ("train", "fresh"):
            trained(asked(learner, loss_level=level, tested=tested, **fields))
    assert draw.call_count == 3


def test_runs_are_independent_and_the_standard_error_falls_with_their_number() -> None:
    few, many = (trained(asked("linear", coordinates=38), runs=runs) for runs in (4, 64))
    assert standard_error(many) < 0.5 * standard_error(few)
    assert few.value != many.value


# ---------------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("learner", "fields", "sentence"),
    [
        ("network", {}, "Expected width >= 1 for learner=network, got width=0."),
        (
            "linear",
            {"width": 8},
            "Expected width=0, iterations=0 and stopping_loss=0 for learner=linear, got width=8,",
        ),
        (
            "nearest",
            {"coordinates": 1},
            "Expected coordinates >= 2 for features on a sphere, got coordinates=1.",
        ),
    ],
)
def test_contradictory_fields_are_refused(learner: str, fields: dict[str, float], sentence: str) -> None:
    with pytest.raises(DomainError, match=f"^{re.escape(sentence)}"):
        asked(learner, **fields)


@pytest.mark.parametrize(
    ("learner", "fields", "reason"),
    [
        (
            "network",
            NETWORK | {"loss_level": 1e-11},
            "Below loss_level=1e-10 a network's loss is rounding error",
        ),
        (
            "network",
            NETWORK | {"iterations": 10**5, "records": 10**5},
            "Training would take more than 1800 s.",
        ),
        ("linear", {"coordinates": 10**6, "records": 900}, "Training would need more than 4e+09 bytes."),
    ],
)
def test_what_is_too_small_or_too_large_is_declined(
    learner: str, fields: dict[str, float], reason: str
) -> None:
    found = MembershipTrained().applies(asked(learner, **fields))
    assert found is not None
    assert found.startswith(reason)


def test_a_network_that_leaves_single_precision_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Residuals(np.array([0.1, math.nan]), np.zeros(2))
    monkeypatch.setattr(experiment_trained, "_residuals", lambda *_: (lost, lost))
    answer = evaluate(Point(problem=asked("network", **NETWORK), method=MembershipTrained()))
    assert (answer.status, answer.detail) == (Status.FAILED, "Training overflowed single precision.")


def test_without_jax_networks_are_declined_and_formulas_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_trained, "_can_learn", lambda: False)
    network = asked("network", **NETWORK)
    assert MembershipTrained().applies(network) == (
        "Training a network needs JAX: pip install 'privsweep[learn]'."
    )
    assert MembershipTrained().applies(asked("linear")) is None


# ------------------------------------------------------------------------------------- the size of the paper


@pytest.mark.soak
@pytest.mark.parametrize("stopping_loss", [0.0, 5e-8])
def test_the_network_of_the_paper_overfits(stopping_loss: float) -> None:
    fields = {"coordinates": 10, "records": 1000, "width": 4096, "loss_level": 1e-6}
    lengths = (250, 1000, 2500)
    fitted = [
        share(asked("network", tested="train", iterations=n, stopping_loss=stopping_loss, **fields))
        for n in lengths
    ]
    assert fitted[0] < 0.3
    assert fitted == sorted(fitted)
    assert fitted[-1] >= 0.95
    fresh = share(asked("network", tested="fresh", iterations=2500, stopping_loss=stopping_loss, **fields))
    assert 0.0 < fresh <= noise_share(1e-6, 0.1)
