"""p-values of claimed training runs: valid, as sharp as the search for the noise, equal for Gaussian runs."""

import numpy as np
import pytest

from privcore import Status, UnknownNameError
from privcore.likelihood_ratio.finite import approximate, covering
from tests.privcore.draws import answer

COUNTS = {"canaries": 1000, "guesses": 100, "correct": 90, "design": "independent"}


def tail(phases: str, **fields: object) -> float:
    return answer("audit-claim-tail", "auditing.claimed", phases=phases, **{**COUNTS, **fields}).upper


def test_the_noise_that_an_audit_refutes_has_a_p_value_of_one_minus_the_confidence() -> None:
    sampling = {"sampling_probability": 0.01, "steps": 1000}
    noise = answer("audit-dpsgd-noise", "auditing.noise", **COUNTS, **sampling).upper
    run = "poisson(sigma={},sampling_probability=0.01,steps=1000)"
    below, at, above = (tail(run.format(noise * factor)) for factor in (0.98, 1.0, 1.02))
    assert at == pytest.approx(0.05, rel=0.02)
    assert above < 0.045
    assert below > 0.055


@pytest.mark.parametrize(("run", "mu"), [("none(sigma=2,steps=1)", 0.5), ("none(sigma=4,steps=9)", 0.75)])
def test_a_run_of_public_steps_has_the_p_value_of_its_gaussian_mechanism(run: str, mu: float) -> None:
    methods = ("auditing.curve", "auditing.recursion", "auditing.programme")
    best = min(answer("audit-gaussian-tail", method, mu=mu, **COUNTS).upper for method in methods)
    assert best * (1.0 - 1e-9) <= tail(run) <= best * 1.0001


def test_more_correct_guesses_have_a_smaller_p_value_and_a_random_half_a_larger_one() -> None:
    run = "fixed-size(sigma=1.5,sampling_probability=0.05,steps=10)"
    found = [tail(run, correct=correct) for correct in (70, 80, 90, 95)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.01 < found[0]
    assert tail(run, design="exactly-half") > found[2]


def test_pairs_refute_the_relation_of_replaced_records() -> None:
    run = "poisson(sigma=1,sampling_probability=0.05,steps=10)"
    assert tail(run, design="pairs") > 1.2 * tail(run)


def test_a_sampler_without_a_proof_for_the_relation_of_the_design_is_refused() -> None:
    run = "shuffling(sigma=1,steps=10,redraw=each-epoch)"
    found = answer("audit-claim-tail", "auditing.claimed", phases=run, **COUNTS)
    assert found.status is Status.NOT_APPLICABLE
    assert "the number of batches would change" in found.detail
    assert tail(run, design="pairs") <= 1.0


@pytest.mark.thorough
def test_audits_of_a_true_claim_reject_it_in_at_most_five_percent_and_a_false_one_mostly() -> None:
    """Each canary has its own coordinate, so its likelihood ratio is that of the pair of the run."""
    generator, audits, canaries, guesses, steps, rate = np.random.default_rng(5), 2000, 200, 20, 3, 0.5
    included = generator.random((audits, canaries)) < 0.5
    used = included[..., None] & (generator.random((audits, canaries, steps)) < rate)
    outputs = used + generator.standard_normal((audits, canaries, steps))
    scores = np.log1p(rate * np.expm1(outputs - 0.5)).sum(axis=-1)
    clearest = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    right = np.take_along_axis((scores > 0.0) == included, clearest, axis=1).sum(axis=1)
    rejected = {}
    for sigma in (1.0, 3.0):
        run = f"poisson(sigma={sigma},sampling_probability={rate},steps={steps})"
        values = {
            count: tail(run, canaries=canaries, guesses=guesses, correct=count)
            for count in set(right.tolist())
        }
        rejected[sigma] = float(np.mean([values[count] <= 0.05 for count in right.tolist()]))
    assert rejected[1.0] <= 0.05
    assert rejected[3.0] >= 0.5


@pytest.mark.parametrize("epsilon", [100.0, 126.45, 140.0, 300.0])
def test_a_far_guarantee_keeps_its_masses(epsilon: float) -> None:
    one, several = approximate(epsilon, 1e-6), covering([(epsilon, 1e-6)])
    assert several.losses == pytest.approx(one.losses)
    assert several.masses == pytest.approx(one.masses, rel=1e-12)
    assert several.infinite == pytest.approx(one.infinite, rel=1e-12)


def test_sizes_of_batches_belong_to_samplers() -> None:
    with pytest.raises(UnknownNameError, match="examples"):
        tail("guarantee(epsilon=1,examples=10,batch_size=3)")
