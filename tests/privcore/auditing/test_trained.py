"""Audits of real training: distribution of the scores of canaries, effects of bugs, and their detection."""

import math
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from numpy.typing import NDArray

from privcore import Answer, DomainError, Point, Status, evaluate
from privcore.auditing import canary_training
from privcore.auditing import params as audit_params
from privcore.auditing import trained as trained_audit
from privcore.auditing.canary_training import (
    CLIP_NORM,
    PULL,
    CanaryWeights,
    Examples,
    Trained,
    block_size,
    clip,
    digits,
    loss,
    recipe,
    train,
)
from privcore.auditing.counts import AuditingCombined, AuditingGaussian
from privcore.auditing.problems import AuditEpsilon, AuditTraining
from privcore.auditing.tightest import AuditingTightest, AuditingTightestMu, refuted_by
from privcore.auditing.trained import AuditingTrained, count_correct

SPREAD = 4.0  # standard errors; the seeds are fixed
DELTA = 1e-5

# One process trains them all: a training is compiled once for every number of canaries.
pytestmark = [pytest.mark.sampled(3), pytest.mark.xdist_group("auditing by training")]

Floats = NDArray[np.float64]


def asked(**fields: float | str) -> AuditTraining:
    usual = {"sigma": 4.58, "steps": 500, "sampling_probability": 0.1, "canaries": 5000, "guesses": 200}
    return AuditTraining.from_fields(usual | {"delta": DELTA} | fields)


def audited(problem: AuditTraining, seed: int) -> Answer:
    answer = AuditingTrained().answer(problem, seed)
    assert answer.status is Status.OK, answer
    assert answer.confidence == problem.audit_confidence
    return answer


def gaussian_epsilon(answer: Answer) -> float:
    """Return the value, which is for a Gaussian mechanism; the detail repeats it."""
    found = re.fullmatch(
        r"\d+ of \d+ guesses correct; (\S+) if the mechanism is Gaussian; training accuracy 0\.\d{3}",
        answer.detail,
    )
    assert found, answer.detail
    assert answer.value is not None
    assert f"{answer.value:.4g}" == found[1]
    return answer.value


@cache
def claimed(sigma: float, rate: float, steps: int) -> float:
    """Return the epsilon of the correct training."""
    one = from_gaussian_mechanism(sigma, sampling_prob=rate, value_discretization_interval=1e-3)
    return float(one.self_compose(steps).get_epsilon_for_delta(DELTA))


@cache
def scores(bug: str, sigma: float, rate: float, steps: int) -> tuple[Floats, Floats]:
    """Return the scores of included canaries, and those of all other canaries and coordinates."""
    included = np.arange(2000) % 2 == 0
    moved = train(included, recipe(sigma, rate, bug), steps, seed=7).moved
    return moved[:2000:2], np.concatenate([moved[1:2000:2], moved[2000:]])


def assert_law(sample: Floats, mean: float, variance: float) -> None:
    """Compare mean and variance of nearly normal numbers, to a few standard errors."""
    n = len(sample)
    assert sample.mean() == pytest.approx(mean, abs=SPREAD * math.sqrt(variance / n))
    assert sample.var(ddof=1) == pytest.approx(variance, rel=SPREAD * math.sqrt(2.0 / n))


# ------------------------------------------------------------------------------------------ the training


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1.0, 0.2, 100), (0.3, 0.5, 40), (5.0, 0.05, 200)])
def test_the_score_of_a_canary_is_its_participations_and_the_noise(
    sigma: float, rate: float, steps: int
) -> None:
    inside, out = scores("none", sigma, rate, steps)
    noise = steps * sigma**2
    assert_law(inside, rate * steps, noise + steps * rate * (1.0 - rate))
    assert_law(out, 0.0, noise)


@pytest.mark.parametrize(
    ("bug", "participation", "noise"),
    [
        ("none", 1.0, 1.0),
        ("noise-halved", 1.0, 0.5),
        ("noise-unscaled", 1.0, 1.0 / CLIP_NORM),
        ("rate-doubled", 2.0, 1.0),
    ],
)
def test_a_bug_changes_what_it_should_and_nothing_else(bug: str, participation: float, noise: float) -> None:
    sigma, rate, steps = 2.0, 0.1, 100
    inside, out = scores(bug, sigma, rate, steps)
    rate *= participation
    assert_law(out, 0.0, steps * (noise * sigma) ** 2)
    assert_law(inside, rate * steps, steps * (noise * sigma) ** 2 + steps * rate * (1.0 - rate))


def test_canaries_pull_too_much_where_only_the_mean_is_clipped() -> None:
    sigma, rate, steps = 2.0, 0.1, 100
    inside, out = scores("clip-after-averaging", sigma, rate, steps)
    assert_law(out, 0.0, steps * sigma**2)
    # There are many orthogonal canaries, so their mean is short and is not clipped, either.
    assert_law(inside, PULL * rate * steps, steps * (sigma**2 + PULL**2 * rate * (1.0 - rate)))


def test_every_bug_has_a_recipe_of_its_own() -> None:
    assert len({recipe(2.0, 0.1, bug) for bug in audit_params.BUG.choices}) == len(audit_params.BUG.choices)
    assert recipe(2.0, 0.7, "rate-doubled").rate == 1.0


@pytest.mark.thorough
def test_the_gradients_of_images_and_canaries_are_those_of_the_formulas_and_clipped() -> None:
    import jax
    import jax.numpy as jnp

    pixels, shown = digits()
    rng = np.random.default_rng(5)
    matrix, offset = rng.standard_normal((64, 10)), rng.standard_normal(10)
    weights = CanaryWeights(*(x.astype(np.float32) for x in (matrix, offset, np.zeros(block_size(3)))))
    both = Examples(
        np.concatenate([pixels[:100], np.zeros((3, 64), dtype=np.float32)]),
        np.concatenate([shown[:100], np.zeros(3, dtype=np.int32)]),
        np.concatenate([np.full(100, -1), np.arange(3)]).astype(np.int32),
    )
    batch = np.concatenate([np.arange(103), np.zeros(64)])
    with jax.enable_x64(False):
        given = weights, jax.tree.map(jnp.asarray, both), jnp.asarray(batch, dtype=jnp.int32), 103
        found = canary_training._sum_of_gradients(*given, CLIP_NORM)
        free = canary_training._sum_of_gradients(*given, np.inf)

    logits = pixels[:100] @ matrix + offset
    errors = np.exp(logits - logits.max(axis=1, keepdims=True))
    errors = errors / errors.sum(axis=1, keepdims=True) - np.eye(10)[shown[:100]]
    squares = (errors**2).sum(axis=1) * (1.0 + (pixels[:100] ** 2).sum(axis=1))
    scale = np.minimum(1.0, CLIP_NORM / np.sqrt(squares))
    assert 5 < np.count_nonzero(scale < 1.0) < 95  # clipping matters for some images and not for others
    for got, factor, canary in ((found, scale, CLIP_NORM), (free, np.ones(100), PULL * CLIP_NORM)):
        assert np.asarray(got.matrix) == pytest.approx(pixels[:100].T @ (factor[:, None] * errors), abs=1e-4)
        assert np.asarray(got.offset) == pytest.approx((factor[:, None] * errors).sum(axis=0), abs=1e-4)
        assert np.asarray(got.block[:3]) == pytest.approx(canary, rel=1e-6)
        assert not np.asarray(got.block[3:]).any()


def test_clipping_shortens_what_is_long_and_leaves_the_rest() -> None:
    long = CanaryWeights(np.full((1, 1), 3.0), np.array([0.0]), np.array([4.0, 12.0]))
    assert [np.asarray(x).ravel().tolist() for x in clip(long, 6.5)] == [[1.5], [0.0], [2.0, 6.0]]
    for norm in (13.0, math.inf):
        assert [np.asarray(x).ravel().tolist() for x in clip(long, norm)] == [[3.0], [0.0], [4.0, 12.0]]
    zero = CanaryWeights(*(np.zeros(1) for _ in range(3)))
    assert not any(np.asarray(x).any() for x in clip(zero, 1.0))
    assert float(loss(zero._replace(matrix=np.zeros((64, 10)), offset=np.zeros(10)), one_image())) == (
        pytest.approx(math.log(10.0))
    )


def one_image() -> Examples:
    pixels, shown = digits()
    return Examples(pixels[0], shown[0], np.int32(-1))


def test_the_model_learns_beside_its_canaries() -> None:
    included = np.arange(1000) % 2 == 0
    assert train(included, recipe(2.0, 0.1, "none"), 400, seed=1).accuracy > 0.92
    assert train(included, recipe(2.0, 0.1, "none"), 0, seed=1).accuracy < 0.2


# ------------------------------------------------------------------------------------------- the guesses


def test_guesses_take_the_highest_scores_for_in_and_the_lowest_for_out() -> None:
    rng = np.random.default_rng(2)
    for guesses in (0, 1, 2, 7, 10):
        points, included = rng.standard_normal(10), rng.random(10) < 0.5
        ranked = included[np.argsort(points)]
        out, inside = guesses // 2, guesses - guesses // 2
        expected = (~ranked[:out]).sum() + ranked[10 - inside :].sum()
        assert count_correct(points, included, guesses, rng) == expected


def test_ties_are_broken_by_the_seed_and_in_favour_of_nobody() -> None:
    included = np.arange(100) < 50  # in the order of the input, all guesses would be wrong
    found = [count_correct(np.zeros(100), included, 20, np.random.default_rng(s)) for s in range(400)]
    assert len(set(found)) > 5
    assert np.mean(found) == pytest.approx(10.0, abs=SPREAD * float(np.std(found)) / 20.0)


# --------------------------------------------------------------------------------------------- the audit


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", [8.45, 4.58, 2.58])
def test_a_correct_training_is_never_suspected(sigma: float) -> None:
    limit = claimed(sigma, 0.1, 500)
    for seed in range(4):
        answer = audited(asked(sigma=sigma, canaries=1000, guesses=100), seed)
        assert answer.lower <= limit
        assert gaussian_epsilon(answer) <= limit


@pytest.mark.thorough
@pytest.mark.parametrize("bug", audit_params.BUG.choices[1:])
def test_five_thousand_canaries_tell_that_the_curve_is_not_as_claimed(bug: str) -> None:
    """With the Gaussian family the power is 0.999 for half the noise and for twice the rate."""
    assert gaussian_epsilon(audited(asked(bug=bug), 3)) > claimed(4.58, 0.1, 500)


@pytest.mark.thorough
@pytest.mark.parametrize("bug", ["noise-unscaled", "clip-after-averaging"])
def test_five_thousand_canaries_refute_the_epsilon_of_a_gross_bug_without_assumptions(bug: str) -> None:
    assert audited(asked(bug=bug), 3).lower > claimed(4.58, 0.1, 500)


def test_noise_without_end_lets_nothing_be_refuted() -> None:
    for seed in range(3):
        answer = audited(asked(sigma=1e6, canaries=1000, steps=50), seed)
        assert answer.lower < 0.1
        assert answer.lower < 0.01 * audited(asked(sigma=0.5, canaries=1000, steps=50), seed).lower


def test_of_canaries_that_never_take_part_privacy_is_refuted_at_the_nominal_level() -> None:
    """Guesses are then coin flips, and every refuted epsilon is an error."""
    moved = train(np.zeros(1000, dtype=bool), recipe(2.0, 0.1, "none"), 50, seed=4).moved[:1000]
    rng = np.random.default_rng(6)
    runs, guesses = 4000, 200

    @cache
    def refutes(correct: int) -> bool:
        counts = AuditEpsilon(canaries=1000, guesses=guesses, correct=correct, delta=DELTA)
        return refuted_by(counts, "approximate") > 0.0

    errors = sum(refutes(count_correct(moved, rng.random(1000) < 0.5, guesses, rng)) for _ in range(runs))
    assert errors / runs <= 0.05 + SPREAD * math.sqrt(0.05 * 0.95 / runs)
    assert errors / runs >= 0.02  # the errors are not far below the level


def test_the_answer_is_that_of_the_best_audits_of_its_counts() -> None:
    answer = audited(asked(canaries=1000), 1)
    correct = int(answer.detail.split()[0])
    counts = AuditEpsilon(canaries=1000, guesses=200, correct=correct, delta=DELTA)
    assert answer.lower == AuditingTightest().answer(counts, 0).lower
    gaussian = AuditingTightestMu().answer(counts, 0).value
    assert answer.value == gaussian
    assert answer.lower > AuditingCombined().answer(counts, 0).lower
    by_algorithm_3 = AuditingGaussian().answer(counts, 0).value
    assert gaussian is not None
    assert by_algorithm_3 is not None
    assert gaussian > by_algorithm_3
    assert 100 < correct < 200


def test_runs_of_other_numbers_are_other_trainings_and_run_0_is_the_only_one_without_a_number() -> None:
    points = [
        Point(problem=asked(canaries=300, guesses=100, steps=20, **fields), method=AuditingTrained())
        for fields in ({}, {"run": 0}, {"run": 1}, {"run": 2})
    ]
    assert points[0].canonical == points[1].canonical
    assert len({point.seed for point in points}) == 3
    assert len({evaluate(point).detail for point in points}) == 3


# ---------------------------------------------------------------------------------------------- the frame


def test_more_guesses_than_canaries_are_refused() -> None:
    with pytest.raises(DomainError, match=r"^Expected guesses <= canaries, got guesses=101, canaries=100\.$"):
        asked(canaries=100, guesses=101)
    with pytest.raises(DomainError, match=r"^Expected bug in \{none, .*\}, got bug='typo'\.$"):
        asked(bug="typo")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"canaries": 20_001}, "A training can have at most 20000 canaries."),
        ({"steps": 10**9}, "The gradients of this training have more than 5e+10 numbers in all."),
    ],
)
def test_a_training_that_is_too_long_is_declined_in_a_sentence(fields: dict[str, float], reason: str) -> None:
    assert AuditingTrained().applies(asked(**fields)) == reason


def test_scores_that_are_not_finite_are_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Trained(moved=np.full(block_size(100), np.nan), accuracy=0.1)
    monkeypatch.setattr(canary_training, "train", lambda *_: lost)
    answer = evaluate(Point(problem=asked(canaries=100, guesses=10), method=AuditingTrained()))
    assert (answer.status, answer.detail) == (
        Status.FAILED,
        "Training diverged: its weights exceed single precision.",
    )


def test_without_the_packages_the_method_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AuditingTrained().applies(asked()) is None
    trained_audit._can_learn.cache_clear()
    monkeypatch.setattr(trained_audit, "find_spec", lambda package: None)
    try:
        reason = AuditingTrained().applies(asked())
    finally:
        trained_audit._can_learn.cache_clear()
    assert reason == "Training needs JAX and scikit-learn: pip install 'privsweep[learn]'."


def test_privcore_is_imported_without_them() -> None:
    heavy = "{'jax', 'sklearn', 'scipy.stats'} & sys.modules.keys()"
    command = f"import sys, privcore, privcore.auditing.trained; assert not {heavy}, {heavy}"
    subprocess.run([sys.executable, "-c", command], check=True)


@pytest.mark.thorough
def test_another_process_gets_the_same_bits_even_where_jax_is_asked_for_double_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    problem = asked(canaries=1000, guesses=100, steps=100)
    here = evaluate(Point(problem=problem, method=AuditingTrained()))
    moved = train(np.ones(1000, dtype=bool), recipe(2.0, 0.1, "none"), 20, seed=2).moved
    command = (
        "import numpy as np\n"
        "from privcore import Point, evaluate, find, find_problem\n"
        "from privcore.auditing.canary_training import recipe, train\n"
        f"asked = find_problem('audit-training').from_fields({problem.as_fields()!r})\n"
        "print(repr(evaluate(Point(problem=asked, method=find('auditing.trained')()))))\n"
        "moved = train(np.ones(1000, dtype=bool), recipe(2.0, 0.1, 'none'), 20, seed=2).moved\n"
        "print(moved.tobytes().hex())"
    )
    there = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert there.stdout.splitlines() == [repr(here), moved.tobytes().hex()]


@pytest.mark.soak
@pytest.mark.parametrize(("sigma", "expected"), [(8.45, 0.51), (4.58, 0.61), (2.58, 0.27)])
def test_half_the_noise_is_caught_as_often_as_the_optimal_attacker_says(
    sigma: float, expected: float
) -> None:
    """Without a model, with 5000 canaries, the power is that for independent Gaussian scores."""
    limit, runs = claimed(sigma, 0.1, 500), 100
    problem = asked(sigma=sigma, bug="noise-halved")
    caught = sum(audited(problem, seed).lower > limit for seed in range(runs)) / runs
    assert caught == pytest.approx(expected, abs=SPREAD * math.sqrt(expected * (1.0 - expected) / runs))
