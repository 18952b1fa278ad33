"""p-values of claims other than training runs: noise, guarantees, profiles from a file, and compositions."""

import math
from pathlib import Path

import numpy as np
import pytest
import scipy

from privcore import Answer, Point, PrivsweepError, Status, evaluate, find
from privcore.auditing.recursion import LAPLACE, NO_LINES, smallest_level
from privcore.likelihood_ratio.distribution import Resolution
from privcore.likelihood_ratio.finite import covering
from privcore.likelihood_ratio.profile import delta_upper
from privcore.numerics.gaussian import gaussian_delta_bounds
from privcore.training.claims import CLAIM_TEXT, CLAIMS, claim
from tests.privcore.draws import problem

COUNTS = {"canaries": 1000, "guesses": 100, "correct": 90, "design": "independent"}
RESOLUTION = Resolution(fineness=1e-3, tail=1e-15)


def answer(name: str, method: str, **fields: object) -> Answer:
    return evaluate(Point(problem=problem(name, **{**COUNTS, **fields}), method=find(method)()))


def tail(phases: str, **fields: object) -> float:
    return answer("audit-claim-tail", "auditing.claimed", phases=phases, **fields).upper


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_a_guarantee_has_the_exact_p_value_of_its_epsilon_and_delta(delta: float) -> None:
    exact = answer("audit-tail", "auditing.exact", claimed_epsilon=1.0, delta=delta).upper if delta else None
    exact = exact or scipy.stats.binom.sf(89, 100, math.e / (1.0 + math.e))
    for text in (f"guarantee(epsilon=1,delta={delta})", f"profile(curve=1:{delta})"):
        assert exact * (1.0 - 1e-9) <= tail(text) <= exact * (1.0 + 1e-8)


def test_gaussian_noise_is_a_run_whose_steps_all_use_the_example() -> None:
    assert tail("gaussian(sigma=2)", correct=99) == tail("none(sigma=2,steps=1)", correct=99) < 0.01
    assert tail("gaussian(sigma=2,steps=3)") == tail("none(sigma=2,steps=3)")


def test_laplace_noise_has_at_most_the_p_value_of_algorithm_3_on_its_exact_curve() -> None:
    level = smallest_level((LAPLACE, 1.0, 0.0), NO_LINES, (1000.0, 100.0, 90.0, 2.0))
    attained = scipy.stats.binom.sf(89, 100, math.e / (1.0 + math.e))  # by the 100 clearest of many canaries
    assert attained <= tail("laplace(scale=1)") <= level
    assert tail("laplace(scale=2)") < 0.01 * tail("laplace(scale=1)")


def test_a_sampled_mechanism_is_refuted_by_fewer_correct_guesses() -> None:
    whole = tail("laplace(scale=1,steps=2)")
    assert tail("laplace(scale=1,steps=2,sampling_probability=0.3)") < 0.1 * whole


def test_uses_and_parts_compose() -> None:
    guarantee = "guarantee(epsilon=0.5,delta=1e-5"
    assert tail(f"{guarantee},steps=2)") == pytest.approx(tail(f"{guarantee}); {guarantee})"), rel=1e-6)
    assert tail("none(sigma=2,steps=1)") < tail("none(sigma=2,steps=1); laplace(scale=2)")


def test_a_profile_of_many_pairs_has_the_p_value_of_the_mechanism(tmp_path: Path) -> None:
    epsilons = np.linspace(0.0, 8.0, 400)
    deltas = [gaussian_delta_bounds(1.0, float(epsilon))[1] for epsilon in epsilons]
    lines = [f"{epsilon!r},{delta!r}" for epsilon, delta in zip(epsilons.tolist(), deltas, strict=True)]
    (tmp_path / "curve.csv").write_text("epsilon,delta\n" + "\n".join(lines) + "\n")
    gaussian = tail("none(sigma=1,steps=1)", correct=95)
    found = tail(f"profile(curve={tmp_path / 'curve.csv'})", correct=95)
    assert gaussian * 0.999 <= found <= gaussian * 1.05
    assert tail("profile(curve=0:0.5 1:0.3)", correct=95) > found


def test_the_profile_of_several_pairs_is_the_largest_convex_one_below_them() -> None:
    pairs = [(0.0, 0.4), (0.5, 0.35), (1.0, 0.05), (3.0, 1e-4)]
    law = covering(pairs).bracket(RESOLUTION).upper
    share = (math.exp(0.5) - 1.0) / (math.e - 1.0)
    chord = 0.4 * (1.0 - share) + 0.05 * share
    for epsilon, delta in [(0.0, 0.4), (0.5, chord), (1.0, 0.05), (3.0, 1e-4)]:
        bound = delta_upper(law, epsilon, "add-remove")
        assert delta * (1.0 - 1e-12) <= bound <= delta * (1.0 + 1e-9)
    assert delta_upper(law, 9.0, "add-remove") == pytest.approx(1e-4, rel=1e-9)


def largest_rate(orders: list[tuple[float, float]], false_positive_rate: float) -> float:
    """Return the largest true positive rate of a test under Renyi bounds: that of a step with two outputs."""

    def allowed(p: float) -> bool:
        pairs = ((p, false_positive_rate), (false_positive_rate, p))
        return all(
            np.logaddexp(a * math.log(x / y) + math.log(y), a * math.log((1 - x) / (1 - y)) + math.log1p(-y))
            <= (a - 1.0) * bound
            for a, bound in orders
            for x, y in pairs
        )

    low, high = false_positive_rate, 1.0 - 1e-15
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


CURVES = {
    "2:0.5": [(2.0, 0.5)],
    "1.5:0.1 8:0.3 32:2": [(1.5, 0.1), (8.0, 0.3), (32.0, 2.0)],
    "64:3": [(64.0, 3.0)],
}


@pytest.mark.parametrize("curve", CURVES)
def test_renyi_bounds_have_the_profile_of_the_best_test_that_they_allow(curve: str) -> None:
    (part,) = claim(f"renyi(curve={curve})")
    law = part.bounds("add-remove", 1.0).above[0].ratio.bracket(RESOLUTION).upper
    for epsilon in (0.0, 0.2, 1.0, 2.0):

        def missed(log: float, ratio: float = math.exp(epsilon)) -> float:
            return ratio * math.exp(log) - largest_rate(CURVES[curve], math.exp(log))

        best = scipy.optimize.minimize_scalar(missed, bounds=(-25.0, -0.5), method="bounded")
        attained, bound = -best.fun, delta_upper(law, epsilon, "add-remove")
        assert attained <= bound <= attained * 1.005 + 1e-6


@pytest.mark.parametrize(
    ("rho", "rates"),
    [(0.1, (0.0047683, 0.035062, 0.23083, 0.71209)), (0.5, (0.02491, 0.12459, 0.48373, 0.89299))],
)
def test_zero_concentrated_privacy_has_the_largest_rates_of_all_orders(
    rho: float, rates: tuple[float, ...]
) -> None:
    (part,) = claim(f"zcdp(rho={rho})")
    law = part.bounds("add-remove", 1.0).above[0].ratio.bracket(RESOLUTION).upper
    profile = [
        (math.exp(e), delta_upper(law, e, "add-remove")) for e in np.linspace(-6.0, 6.0, 1200).tolist()
    ]
    for false_positive_rate, rate in zip((0.001, 0.01, 0.1, 0.5), rates, strict=True):
        bound = min(delta + ratio * false_positive_rate for ratio, delta in profile)
        assert rate * (1.0 - 2e-4) <= bound <= rate * 1.002


@pytest.mark.parametrize("loss", [0.5, 1.0, 2.0])
def test_a_mechanism_with_the_renyi_divergences_of_a_claim_refutes_no_more_than_its_level(
    loss: float,
) -> None:
    truth = 1.0 / (1.0 + math.exp(-loss))
    orders = (2.0, 8.0, 64.0)
    words = [
        f"{a}:{math.log(truth**a * (1 - truth) ** (1 - a) + (1 - truth) ** a * truth ** (1 - a)) / (a - 1)}"
        for a in orders
    ]
    attained = scipy.stats.binom.sf(89, 100, truth)
    assert attained <= tail(f"renyi(curve={' '.join(words)})", canaries=100) <= 1.0
    assert tail(f"renyi(curve={' '.join(words)})") < tail(f"renyi(curve={words[0]})")


def test_zero_concentrated_privacy_adds_up_and_covers_gaussian_noise() -> None:
    assert tail("zcdp(rho=0.125,steps=4)", correct=97) == tail("zcdp(rho=0.5)", correct=97)
    assert tail("gaussian(sigma=1)", correct=97) < tail("zcdp(rho=0.5)", correct=97) < 1.0
    assert tail("zcdp(rho=0.1)") < 0.05 < tail("zcdp(rho=0.5)")
    assert tail("zcdp(rho=700,steps=1000)") == 1.0
    assert tail("renyi(curve=2:0.1)") > tail("renyi(curve=2:0.1 16:0.8)")


def test_text_and_file_of_a_profile_are_one_claim(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("delta,epsilon\n.05,1\n0.3,0\n")
    (part,) = claim(CLAIM_TEXT.check(f"profile(curve={tmp_path / 'p.csv'})"))
    assert part.as_fields() == {"curve": "0:0.3 1:0.05", "steps": 1}
    for text in CLAIM_TEXT.typical:
        assert CLAIM_TEXT.check(text) == text
    assert {"profile", "guarantee", "laplace", "poisson"} <= set(CLAIMS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("profile(curve=nofile.csv)", "nofile.csv is not a file"),
        ("profile(curve=0:1.5)", r"Expected delta in \[0, 1\]"),
        ("profile(curve=-1:0.5)", r"Expected epsilon in \[0, 700\]"),
        ("guarantee(epsilon=1,delta=2)", r"Expected delta in \[0, 1\]"),
        ("laplace(scale=0)", "Expected scale in"),
        ("zcdp(rho=0)", "Expected rho in"),
        ("renyi(curve=1:0.5)", r"Expected order in \(1, 1024\]"),
        ("renyi(curve=nofile.csv)", "nofile.csv is not a file"),
        ("laplace(sigma=1)", "Unknown field of laplace"),
        ("gauss(sigma=1)", "laplace, profile, randomized-response"),
    ],
)
def test_a_claim_that_means_nothing_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(PrivsweepError, match=sentence) as caught:
        problem("audit-claim-tail", **COUNTS, phases=text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "design"),
    [("laplace(scale=1)", "pairs"), ("randomized-response(uniform_probability=0.5)", "independent")],
)
def test_a_mechanism_of_another_relation_than_that_of_the_design_is_refused(text: str, design: str) -> None:
    found = answer("audit-claim-tail", "auditing.claimed", phases=text, design=design)
    assert found.status is Status.NOT_APPLICABLE


def test_randomized_response_about_pairs_has_the_p_value_of_its_loss() -> None:
    exact = scipy.stats.binom.sf(89, 100, 0.75)  # a uniform answer half the time
    found = tail("randomized-response(uniform_probability=0.5)", design="pairs")
    assert exact * (1.0 - 1e-9) <= found <= exact * (1.0 + 1e-6)


def test_a_true_claim_of_laplace_noise_is_rejected_in_at_most_five_percent() -> None:
    """Each canary has its own coordinate; the guesses are those with the largest likelihood ratios."""
    generator, audits, canaries, guesses = np.random.default_rng(7), 2000, 150, 60
    included = generator.random((audits, canaries)) < 0.5
    outputs = included + generator.laplace(size=(audits, canaries))
    scores = np.abs(outputs) - np.abs(outputs - 1.0)
    clearest = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    right = np.take_along_axis((scores > 0.0) == included, clearest, axis=1).sum(axis=1)
    fields = {"canaries": canaries, "guesses": guesses}
    for scale, share in ((1.0, (0.0, 0.05)), (3.0, (0.5, 1.0))):
        values = {n: tail(f"laplace(scale={scale})", correct=n, **fields) for n in set(right.tolist())}
        assert share[0] <= np.mean([values[n] <= 0.05 for n in right.tolist()]) <= share[1]
