"""Planning of audits: expected counts, the epsilon they refute, the number of guesses, and the power.

Numbers in strings are printed values; they are correct to half a unit of the last digit.
"""

import csv
import math
import re
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import betainc, betaincinv, ndtr, ndtri

from privcore import Answer, DomainError, Point, Status, evaluate, find, find_problem
from privcore.auditing.ceiling import Attaining
from privcore.auditing.counts import AuditingCombined, epsilon_of, refuted_mu
from privcore.auditing.expected import simplex_success, success_cap
from privcore.auditing.optimal import few_errors, few_errors_of_halves, mean_correct, mean_correct_of_halves
from privcore.auditing.planned import best_guesses, first_tried, planned_audit
from privcore.auditing.power import claimed_mu, few_errors_bounds, least_refuting
from privcore.auditing.problems import AuditBestGuesses, AuditEpsilon, AuditPower
from privcore.auditing.recursion import GAUSSIAN
from privcore.auditing.tightest import refuted_by
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from tests.privcore.draws import answered

pytestmark = pytest.mark.sampled(20)

DATA = Path(__file__).parents[1] / "data" / "auditing.csv"
DELTA, CONFIDENCE = 1e-5, 0.95
FOUR_ERRORS = 4.0
"""Standard errors by which a simulation may differ."""


def rows(kind: str, quantity: str) -> list[dict[str, str]]:
    with DATA.open(newline="") as file:
        return [r for r in csv.DictReader(file) if (r["kind"], r["quantity"]) == (kind, quantity)]


def is_printed(found: float, printed: str) -> bool:
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(found - float(printed)) <= 0.5 * unit * (1.0 + 1e-6)


def expected(**fields: Any) -> Answer:
    return answered("audit-expected-correct", "auditing.expected", **fields)


def planned(canaries: int, guesses: int, sigma: float, **fields: Any) -> Answer:
    fields = {"delta": DELTA, "audit_confidence": CONFIDENCE, "mu": 1.0 / sigma, **fields}
    return answered("audit-planned-epsilon", "auditing.planned", canaries=canaries, guesses=guesses, **fields)


def ceiling(**fields: Any) -> Answer:
    return answered("audit-ceiling", "auditing.ceiling", **{"delta": DELTA, **fields})


# ------------------------------------------------------------------------------------- expected counts


@pytest.mark.parametrize("row", rows("expect", "E_correct_two_sided"), ids=lambda row: row["id"])
def test_the_expected_count_is_that_of_40_digits(row: dict[str, str]) -> None:
    mu = 1.0 / float(row["params"].removeprefix("sigma="))
    found = expected(canaries=int(row["m"]), guesses=int(row["guesses"]), mu=mu)
    assert found.lower <= float(row["value"]) <= found.upper
    assert found.upper - found.lower <= 1e-9 * found.upper
    # The cap for every mechanism is computed independently, and the attack attains it.
    assert found.value == pytest.approx(
        int(row["guesses"]) * success_cap(mu, int(row["m"]), int(row["guesses"]), 2), rel=1e-12
    )


def test_the_success_of_an_attack_on_a_simplex_agrees() -> None:
    for row in rows("expect", "p_success_kary"):
        assert simplex_success(1.0 / 0.6, int(row["k"])) == pytest.approx(
            float(row["value"]), rel=float(row["rtol"])
        )
    for k, printed in ((2, "0.797672"), (10, "0.399175"), (100, "0.110832"), (5000, "0.008233")):
        assert is_printed(simplex_success(1.0 / 0.6, k), printed), k


@pytest.mark.sampled(1)
def test_the_cap_of_lemma_11_agrees() -> None:
    small, large = rows("cap", "success_cap_lemma11")
    assert success_cap(1.0, 1000, 15, 2) == pytest.approx(float(small["value"]), rel=float(small["rtol"]))
    assert success_cap(1.0 / 0.6, 99, 99, 1000) == pytest.approx(
        float(large["value"]), rel=float(large["rtol"])
    )
    assert is_printed(success_cap(1.0 / 0.6, 7, 7, 10), "0.52089")


def test_more_alternatives_leave_a_gap_between_attack_and_cap() -> None:
    found = expected(canaries=1000, guesses=1000, mu=1.0 / 0.6, alternatives=10)
    assert is_printed(found.lower / 1000, "0.39918")
    assert is_printed(found.upper / 1000, "0.52089")


@pytest.mark.parametrize("k", [2, 3, 50, 10**6])
def test_without_a_leak_guesses_are_chance(k: int) -> None:
    found = expected(canaries=300, guesses=120, mu=0.0, alternatives=k)
    assert found.lower <= 120 / k <= found.upper
    assert found.upper - found.lower <= 1e-9 * 120


def test_no_guess_is_never_correct() -> None:
    found = expected(canaries=10, guesses=0, mu=2.0)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_a_simulated_attack_has_the_expected_count() -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2, (400, 20_000))
    clearness = np.abs(rng.standard_normal(bits.shape) + np.where(bits, 0.5, -0.5))
    # |score| is the clearness of a score; its sign is correct with the odds exp(mu |score|).
    right = rng.random(bits.shape) < 1.0 / (1.0 + np.exp(-clearness))
    clearest = np.argpartition(-clearness, 1999, axis=1)[:, :2000]
    correct = np.take_along_axis(right, clearest, axis=1).sum(axis=1)
    found = expected(canaries=20_000, guesses=2000, mu=1.0)
    assert abs(correct.mean() - found.lower) <= FOUR_ERRORS * correct.std() / math.sqrt(400) + 1.0


# ------------------------------------------------------------------------------ the refuted epsilon

FIGURE_1 = """
0.5 100 4.2098 42 41 | 0.5 10000 6.7232 1000 995 | 0.5 10000000 8.1813 31622 31611
1 100 1.5272 24 21 | 1 10000 3.0385 238 225 | 1 100000 3.3556 750 722 | 1 10000000 3.6762 4216 4146
2 1000 0.9924 134 98 | 2 100000 1.4955 750 616 | 4 1000 0.2956 238 144 | 4 1000000 0.7258 3162 2192
"""


@pytest.mark.parametrize("entry", FIGURE_1.replace("\n", "|").strip("|").split("|"), ids=str.strip)
def test_the_best_number_of_guesses_in_figure_1_is_found_with_its_epsilon(entry: str) -> None:
    sigma, canaries, printed, guesses, correct = entry.split()
    problem = AuditBestGuesses(canaries=int(canaries), mu=1.0 / float(sigma), delta=DELTA, family="gaussian")
    by_algorithm_3 = {
        n: refuted_mu(planned_audit(problem.canaries, n, problem.mu, DELTA, CONFIDENCE))
        for n in first_tried(int(canaries))
        if n >= 10
    }
    best = max(by_algorithm_3, key=by_algorithm_3.__getitem__)
    epsilon = epsilon_of(by_algorithm_3[best], DELTA)
    assert best == int(guesses)
    assert is_printed(epsilon, printed)
    assert planned_audit(int(canaries), best, problem.mu, DELTA, CONFIDENCE).correct == int(correct)
    refined = answered("audit-best-guesses", "auditing.best", **problem.as_fields())
    assert epsilon_in(refined) >= epsilon * (1.0 - 1e-5), "the detail has six digits"


def epsilon_in(found: Answer) -> float:
    stated = re.search(r"refutes epsilon (\S+) with", found.detail)
    assert stated is not None, found
    return float(stated[1])


FIGURES_4_TO_7 = {
    1.0: "0.7178 2.4392 3.5470 3.6729 3.6190 3.5184 3.3688 2.8580 1.3055",
    0.5: "0.7178 2.8622 5.4409 6.8874 7.7641 8.1914 7.9339 6.8999 2.8383",
    2.0: "0.2630 1.3249 1.6616 1.6691 1.6333 1.5852 1.5145 1.2805 0.6101",
    4.0: "0.0000 0.5352 0.7427 0.7658 0.7570 0.7349 0.7021 0.5940 0.2866",
}
NUMBERS = (10, 100, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000, 10_000_000)


@pytest.mark.parametrize("sigma", FIGURES_4_TO_7)
def test_figures_4_to_7_come_out_as_computed_before(sigma: float) -> None:
    for guesses, printed in zip(NUMBERS, FIGURES_4_TO_7[sigma].split(), strict=True):
        audit = planned_audit(10**7, guesses, 1.0 / sigma, DELTA, CONFIDENCE)
        by_algorithm_3 = epsilon_of(refuted_mu(audit), DELTA)
        assert is_printed(by_algorithm_3, printed), guesses
        assert by_algorithm_3 <= refuted_by(audit, "gaussian") <= 1.11 * by_algorithm_3
        found = answered(
            "audit-planned-epsilon",
            "auditing.plannedgaussian",
            canaries=10**7,
            guesses=guesses,
            mu=1.0 / sigma,
            delta=DELTA,
            family="gaussian",
        )
        assert found.lower == by_algorithm_3


WITHOUT_MODEL = """
0.5 100 2.1092 | 0.5 1000 3.3919 | 0.5 10000 4.5491 | 0.5 100000 5.7039 | 1 1000 1.6986 | 1 1000000 3.4048
1 10000000 3.6116 | 2 100 0.1151 | 2 100000 1.3699 | 2 1000000 1.5765 | 4 1000 0.1999 | 4 1000000 0.7114
"""


@pytest.mark.parametrize("entry", WITHOUT_MODEL.replace("\n", "|").strip("|").split("|"), ids=str.strip)
def test_without_a_model_the_best_epsilon_is_somewhat_above_that_of_earlier_audits(entry: str) -> None:
    sigma, canaries, printed = entry.split()
    problem = AuditBestGuesses(canaries=int(canaries), mu=1.0 / float(sigma), delta=DELTA)
    tried = [n for n in first_tried(int(canaries)) if n >= 10]
    earlier = max(
        AuditingCombined().answer(planned_audit(problem.canaries, n, problem.mu, DELTA, CONFIDENCE), 0).lower
        for n in tried
    )
    assert is_printed(earlier, printed)
    assert earlier < best_guesses(problem, tried)[0] < 1.01 * earlier


@pytest.mark.parametrize(
    ("canaries", "mu", "guessing", "best", "correct"),
    [
        (100, 1.0, "clearest", 24, 21),
        (100, 1.0, "halves", 28, 24),
        (100, 1.03, "clearest", 25, 22),
        (50, 2.17, "clearest", 21, 21),
    ],
)
def test_the_best_number_of_guesses_is_that_of_the_mean_of_exactly_as_many_guesses(
    canaries: int, mu: float, guessing: str, best: int, correct: int
) -> None:
    """With the mean of `audit-expected-correct`, 20 and 22 guesses would seem best in the last two cases."""
    fields = {"canaries": canaries, "mu": mu, "delta": DELTA, "guessing": guessing}
    found = answered("audit-best-guesses", "auditing.best", **fields)
    assert found.value == best
    assert f" with {correct} correct, the rounded mean of guesses " in found.detail
    rng = np.random.default_rng(1)
    included = rng.random((20_000, canaries)) < 0.5
    scores = rng.standard_normal(included.shape) + mu * (included - 0.5)
    right = included == (scores > 0.0)
    order = np.argsort(np.abs(scores) if guessing == "clearest" else scores, axis=1)
    clearest = np.take_along_axis(right, order, axis=1)[:, -best:]
    ranked = np.take_along_axis(included, order, axis=1)
    halves = np.hstack([ranked[:, -best // 2 :], ~ranked[:, : best // 2]])
    drawn = (halves if guessing == "halves" else clearest).sum(axis=1)
    mean = (mean_correct_of_halves if guessing == "halves" else mean_correct)(canaries, best, mu)
    assert round(mean) == correct
    assert abs(mean - drawn.mean()) <= FOUR_ERRORS * drawn.std() / math.sqrt(20_000)


@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0, 8.0])
@pytest.mark.parametrize(("canaries", "guesses"), [(2, 2), (7, 6), (40, 12), (60, 60), (300, 40)])
def test_mean_counts_are_those_of_the_distributions(canaries: int, guesses: int, mu: float) -> None:
    for mean, at_most in ((mean_correct, few_errors), (mean_correct_of_halves, few_errors_of_halves)):
        correct = math.fsum(at_most(canaries, guesses, errors, mu) for errors in range(guesses))
        assert mean(canaries, guesses, mu) == pytest.approx(correct, abs=1e-3)


def test_a_plan_has_the_closed_form_and_its_ends_are_where_the_probability_is_the_error() -> None:
    tau = 1.0 - CONFIDENCE
    for canaries, guesses, delta in ((1000, 100, 1e-4), (50, 50, 1e-5), (10**5, 750, 1e-6), (40, 12, 0.0)):
        found = planned(canaries, guesses, 1.0, delta=delta)
        correct = int(found.detail.split()[0])
        ends = found.lower, found.upper
        at = [largest_probability(canaries, guesses, correct, end, delta) for end in ends]
        assert at[0] <= tau <= at[1]
        assert found.upper - found.lower <= 1e-9 * found.upper
        free = ceiling(canaries=canaries, guesses=guesses, correct=correct, delta=delta)
        assert (free.lower, free.upper) == (found.lower, found.upper)


def largest_probability(m: int, guesses: int, correct: int, epsilon: float, delta: float) -> mpmath.mpf:
    """The largest probability of all private mechanisms, with 60 digits."""
    with mpmath.workdps(60):
        odds = mpmath.exp(epsilon)
        terms = [mpmath.binomial(guesses, i) * odds**i for i in range(guesses + 1)]
        above, below = mpmath.fsum(terms[correct:]), mpmath.fsum(terms[:correct])
        return above / (above + below) * (1 + m * mpmath.mpf(delta) / correct * below / terms[correct])


def test_a_plan_states_the_counts_and_what_both_families_refute() -> None:
    found = planned(10**7, 10**4, 1.0)
    assert found.value is not None
    assert 3.6116 < found.value < 3.63
    other = planned(10**7, 10**4, 1.0, family="gaussian")
    assert found.detail == f"9790 of 10000 correct; model-based, Gaussian noise: {other.lower:.6g}"
    assert 3.6269 < found.lower < 3.6270
    assert 3.6275 < other.lower < 3.6276
    assert other.detail.startswith(f"9790 of 10000 correct; without a model: {found.lower:.6g}")
    # The true epsilon of the canaries is 4.3772, above the ceiling of every audit by counts.
    assert found.upper < other.upper < 4.3772
    few = planned(10**5, 100, 1.0, family="gaussian")
    assert few.lower == refuted_by(planned_audit(10**5, 100, 1.0, DELTA, CONFIDENCE), "gaussian")


def test_many_alternatives_refute_what_was_computed_before() -> None:
    for k, m, printed in ((10, 10_000, "2.7131"), (1000, 10_000, "3.7497"), (3, 100, "2.2307")):
        correct = round(m * simplex_success(1.0 / 0.6, k))
        fields = {"canaries": m, "guesses": m, "correct": correct, "alternatives": k, "delta": DELTA}
        value = answered("audit-epsilon", "auditing.gaussian", **fields).value
        assert value is not None
        assert is_printed(value, printed), k


def test_the_limit_at_a_fixed_share_of_guesses_stays_below_the_truth() -> None:
    limits = "0.3415 0.6890 0.7962 0.8481 0.8788 0.8990 0.9134"
    for decades, printed in enumerate(limits.split()):
        gamma = 10.0**-decades
        a = success_cap(1.0, 10**9, 10 ** (9 - decades), 2)
        reduced = 0.05 * gamma
        assert is_printed(float(ndtri(reduced * a) - ndtri(reduced * (1.0 - a))), printed), decades


# -------------------------------------------------------------------------------------- the ceiling


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "ceiled", "refuted"),
    [
        (100_000, 1500, 1429, "3.4656", "3.2992"),
        (10_000, 422, 393, "3.2726", "3.0274"),
        (1000, 1000, 691, "1.4524", "1.2967"),
        (100_000, 100_000, 69_146, "1.3347", "1.3054"),
        (100, 80, 70, "3.4930", "2.9324"),
        (20, 20, 18, "3.3662", "2.3358"),
    ],
)
def test_the_ceiling_of_the_gaussian_family_is_that_computed_before(
    canaries: int, guesses: int, correct: int, ceiled: str, refuted: str
) -> None:
    found = ceiling(canaries=canaries, guesses=guesses, correct=correct, family="gaussian")
    # Every accuracy proves a ceiling, and the search for the least may differ in the last digit.
    assert abs(found.upper - float(ceiled)) <= 1e-4
    counts = AuditEpsilon(canaries=canaries, guesses=guesses, correct=correct, delta=DELTA)
    assert is_printed(epsilon_of(refuted_mu(counts), DELTA), refuted)
    assert found.lower == refuted_by(counts, "gaussian")
    without = ceiling(canaries=canaries, guesses=guesses, correct=correct)
    assert without.lower <= without.upper <= (1.0 + 1e-9) * without.lower, "the probability is exact"


def test_the_attaining_mechanism_publishes_as_often_as_computed_before() -> None:
    (row,) = rows("attain", "pi")
    mu, a = (float(word.partition("=")[2]) for word in row["params"].split())
    gamma = int(row["guesses"]) / int(row["m"])
    share = float(row["value"])
    # At this share the mechanism is exactly mu-GDP: 1 - f(wrong) = right.
    wrong, right = share * gamma * (1.0 - a), share * gamma * a
    assert float(ndtr(ndtri(wrong) + mu)) == pytest.approx(right, rel=1e-8)
    # At this mu Algorithm 3 is at its level, 5 %, and the mechanism must stay below it.
    found = Attaining(int(row["m"]), int(row["guesses"]), int(row["correct"])).probability(
        (GAUSSIAN, mu, 0.0)
    )
    tail = float(betainc(int(row["correct"]), int(row["guesses"]) - int(row["correct"]) + 1, a))
    assert found == pytest.approx(share * tail, rel=1e-3)
    assert found <= 0.05


def test_counts_that_chance_explains_have_the_ceiling_0() -> None:
    for correct in (0, 10, 14):
        found = ceiling(canaries=20, guesses=20, correct=correct)
        assert (found.lower, found.upper) == (0.0, 0.0)
    assert ceiling(canaries=20, guesses=20, correct=15).lower > 0.0


def test_with_more_alternatives_a_ceiling_is_known_without_a_model_only() -> None:
    fields: dict[str, Any] = {"canaries": 20, "guesses": 20, "correct": 15, "alternatives": 3, "delta": DELTA}
    found = ceiling(**fields)
    truth = answered("audit-epsilon", "auditing.tightest", **fields).lower
    assert found.lower == truth > ceiling(**{**fields, "alternatives": 2}).lower > 0.0
    assert found.upper <= (1.0 + 1e-9) * found.lower
    fields["family"] = "gaussian"
    reason = find("auditing.ceiling")().applies(find_problem("audit-ceiling").from_fields(fields))
    assert reason == "The mechanism is for guesses of inclusion only (alternatives=2)."


# ---------------------------------------------------------------------------------------- the power


def test_the_least_count_that_refutes_is_what_trying_all_of_them_finds() -> None:
    for claimed, guesses in ((0.0, 20), (0.5, 51), (2.0, 30), (3.0, 8)):
        fields = {"canaries": 60, "guesses": guesses, "claimed_epsilon": claimed, "delta": 1e-3}
        tails = {
            c: min(
                answered("audit-tail", method, correct=c, **fields).upper
                for method in ("auditing.recursion", "auditing.revealed")
            )
            for c in range(guesses + 1)
        }
        least = min((c for c, p in tails.items() if p <= 0.05), default=None)
        assert least_refuting(AuditPower.from_fields({"mu": 1.0, **fields})) == least, fields


def test_in_the_gaussian_family_the_least_count_refutes_the_mu_of_the_claim_and_one_less_does_not() -> None:
    for claimed, guesses in ((0.0, 20), (0.5, 51), (2.0, 30), (3.0, 8)):
        fields = {"canaries": 60, "guesses": guesses, "delta": 1e-3}
        tails = {
            c: answered(
                "audit-gaussian-tail",
                "auditing.recursion",
                canaries=60,
                guesses=guesses,
                correct=c,
                mu=claimed_mu(claimed, 1e-3),
            ).upper
            for c in range(guesses + 1)
        }
        least = min((c for c, p in tails.items() if p <= 0.05), default=None)
        plan = {"mu": 1.0, "claimed_epsilon": claimed, "family": "gaussian", **fields}
        assert least_refuting(AuditPower.from_fields(plan)) == least, plan
        if least is not None:
            values = [
                answered("audit-epsilon", "auditing.gaussian", correct=c, **fields).value or 0.0
                for c in (least - 1, least)
            ]
            assert values[0] <= claimed < values[1], plan


def test_the_mu_of_a_claim_is_that_whose_epsilon_it_is_rounded_up() -> None:
    for epsilon in (0.0, 1e-6, 0.3, 4.0, 80.0, 700.0):
        for delta in (1e-12, 1e-5, 0.3):
            mu = claimed_mu(epsilon, delta)
            above, below = (gaussian_epsilon_bounds(1.0 / (mu * (1.0 + x)), delta)[0] for x in (0.0, -1e-8))
            assert below <= epsilon <= above * (1.0 + 1e-9), (epsilon, delta)
    assert claimed_mu(0.0, 0.3) == pytest.approx(2.0 * ndtri(0.65), rel=1e-9)
    assert claimed_mu(700.0, 1.0 - 1e-16) <= 60.0


def test_a_model_catches_more_of_a_false_claim() -> None:
    fields = {"canaries": 5000, "guesses": 200, "mu": 0.53, "claimed_epsilon": 1.0, "delta": DELTA}
    without, modelled = (
        answered("audit-power", "auditing.power", family=family, **fields)
        for family in ("approximate", "gaussian")
    )
    assert without.upper < 0.6
    assert modelled.lower > 0.9


def test_the_power_lies_between_its_ends_and_a_simulation_agrees() -> None:
    rng = np.random.default_rng(11)
    runs, m, guesses, mu = 20_000, 200, 60, 1.2
    bits = rng.integers(0, 2, (runs, m))
    scores = rng.standard_normal((runs, m)) + np.where(bits, 0.5 * mu, -0.5 * mu)
    clearest = np.argpartition(-np.abs(scores), guesses - 1, axis=1)[:, :guesses]
    right = np.take_along_axis((scores > 0) == bits, clearest, axis=1).sum(axis=1)
    fields = {"canaries": m, "guesses": guesses, "mu": mu, "claimed_epsilon": 1.0, "delta": DELTA}
    found = answered("audit-power", "auditing.power", **fields)
    least = least_refuting(AuditPower.from_fields(fields))
    assert least is not None
    share = float((right >= least).mean())
    assert 0.1 < share < 0.95, "a share that is not extreme"
    assert abs(share - found.lower) <= FOUR_ERRORS * math.sqrt(share * (1.0 - share) / runs) + 5e-4
    assert found.upper - found.lower <= 3e-4
    assert found.value is not None
    assert found.lower <= few_errors(m, guesses, guesses - least, mu) <= found.upper


@pytest.mark.parametrize("family", ["approximate", "gaussian"])
def test_the_power_of_a_true_claim_is_at_most_the_level(family: str) -> None:
    # Gaussian noise with mu = 1 is (4.3772, 1e-5)-DP.
    for guesses in (10, 100, 1000):
        found = answered(
            "audit-power",
            "auditing.power",
            canaries=1000,
            guesses=guesses,
            mu=1.0,
            claimed_epsilon=4.3772,
            delta=DELTA,
            family=family,
        )
        assert found.upper <= 0.05


def test_a_claim_that_no_count_refutes_has_no_power() -> None:
    fields = {"canaries": 100, "guesses": 4, "mu": 3.0, "claimed_epsilon": 1.0, "delta": DELTA}
    found = answered("audit-power", "auditing.power", **fields)
    assert (found.lower, found.upper) == (0.0, 0.0)
    assert found.detail == "no count refutes the claim"


def test_tails_of_a_hundred_million_guesses_are_right() -> None:
    # Without a leak the number of wrong guesses is binomial with probability 1/2, almost normal.
    n = 10**8
    for z in (-1.0, 0.0, 2.0):
        errors = n // 2 + round(z * 0.5 * math.sqrt(n))
        low, high = few_errors_bounds(n, n, errors, 0.0)
        assert low <= ndtr((errors + 0.5 - n / 2) / (0.5 * math.sqrt(n))) <= high


# ------------------------------------------------------------------------------------------ pure privacy


@pytest.mark.parametrize(("guesses", "correct"), [(1, 1), (50, 45), (100, 60), (100, 100)])
def test_the_ceiling_of_pure_privacy_is_where_the_binomial_tail_is_the_error(
    guesses: int, correct: int
) -> None:
    found = ceiling(canaries=100, guesses=guesses, correct=correct, delta=0.0)
    rate = betaincinv(correct, guesses - correct + 1.0, 1.0 - CONFIDENCE)
    truth = max(0.0, math.log(rate / (1.0 - rate)))
    assert found.lower <= truth * (1.0 + 1e-9)
    assert found.upper >= truth * (1.0 - 1e-9)
    assert found.upper <= found.lower + 1e-6


def test_planning_at_delta_zero_is_the_limit_of_small_deltas() -> None:
    pure, small = (planned(1000, 100, 1.0, delta=delta) for delta in (0.0, 1e-15))
    assert small.lower <= pure.lower <= small.lower * (1.0 + 1e-8)
    assert small.upper <= pure.upper <= small.upper * (1.0 + 1e-6)
    assert pure.detail == "90 of 100 correct"
    fields = {"canaries": 1000, "mu": 1.0}
    best = [answered("audit-best-guesses", "auditing.best", **fields, delta=delta) for delta in (0.0, 1e-15)]
    assert best[0].value == best[1].value
    plan = {**fields, "guesses": 100, "claimed_epsilon": 1.0}
    power = [answered("audit-power", "auditing.power", **plan, delta=delta) for delta in (0.0, 1e-15)]
    assert power[0] == power[1]


@pytest.mark.parametrize(
    ("problem", "method", "fields"),
    [
        ("audit-ceiling", "auditing.ceiling", {"guesses": 50, "correct": 45}),
        ("audit-planned-epsilon", "auditing.planned", {"guesses": 50, "mu": 1.0}),
        ("audit-best-guesses", "auditing.best", {"mu": 1.0}),
        ("audit-power", "auditing.power", {"guesses": 50, "mu": 1.0, "claimed_epsilon": 1.0}),
    ],
)
def test_gaussian_noise_has_no_epsilon_to_plan_for_at_delta_zero(
    problem: str, method: str, fields: dict[str, Any]
) -> None:
    asked = find_problem(problem).from_fields({"canaries": 100, "delta": 0.0, "family": "gaussian", **fields})
    found = evaluate(Point(problem=asked, method=find(method)()))
    assert found.status is Status.NOT_APPLICABLE
    assert found.detail == "A Gaussian mechanism has no finite epsilon at delta = 0; see audit-mu."


# ---------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize("problem", ["audit-expected-correct", "audit-planned-epsilon", "audit-power"])
def test_more_guesses_than_canaries_are_refused(problem: str) -> None:
    kind = find_problem(problem)
    fields = {"canaries": 10, "guesses": 11, "mu": 1.0, "delta": DELTA, "claimed_epsilon": 1.0}
    with pytest.raises(DomainError, match="Expected guesses <= canaries, got guesses=11, canaries=10"):
        kind.from_fields({n: v for n, v in fields.items() if n in kind.parameters})


def test_one_canary_has_no_best_number_of_guesses() -> None:
    found = answered("audit-best-guesses", "auditing.best", canaries=1, mu=1.0, delta=DELTA)
    assert found.value == 0.0
    assert found.detail == "none of the numbers of guesses tried refutes an epsilon"
