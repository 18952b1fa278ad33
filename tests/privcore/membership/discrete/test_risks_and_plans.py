"""Records at risk, the best attacks, plans and bounds for discrete records, and errata of the paper."""

import math
from typing import Any

import numpy as np
import pytest

from privcore import find, find_problem
from privcore.distributions.record import RecordDistribution
from privcore.distributions.record_notation import law
from privcore.membership.discrete.deviation import deviation_bounds, largest_constant, least_constant
from privcore.membership.discrete.diversity import diversity
from privcore.membership.discrete.excess import excess
from privcore.membership.discrete.roc import attack_rates
from privcore.membership.discrete.worst_case import worst_advantage
from tests.privcore.membership.discrete.learners import Records, advantage, ask, written

ODDS = (0.3, 0.8, 1.0, 1.25, 3.0)
ROUNDING = 1e-12
"""Error bound of sums of doubles in a test."""


# ---------------------------------------------------------------------- records and attacks


@pytest.mark.parametrize("odds", ODDS)
def test_the_advantage_is_the_mean_of_the_risks(odds: float) -> None:
    weights, n = [0.5, 0.3, 0.2], 12
    risks = [ask("membership-record-risk", atom_probability=p, records=n, odds=odds).upper for p in weights]
    mean = math.fsum(p * risk for p, risk in zip(weights, risks, strict=True))
    assert mean == pytest.approx(advantage(written(weights), n, odds), rel=1e-11)


@pytest.mark.parametrize(
    ("level", "p"), [(0.2, 0.5), (0.5, 0.5), (0.6, 0.3), (0.8, 0.3), (0.81, 0.2), (1.0, 0.2)]
)
def test_a_quantile_of_the_risk_is_the_risk_of_a_value(level: float, p: float) -> None:
    quantile = ask("membership-risk-quantile", law="atoms(0.5,0.3,0.2)", records=12, risk_level=level)
    risk = ask("membership-record-risk", atom_probability=p, records=12)
    assert (quantile.lower, quantile.upper) == pytest.approx((risk.lower, risk.upper), rel=1e-11)


@pytest.mark.parametrize(
    ("p", "n", "odds", "truth"),
    [(0.3333333333333333, 1, 3.0, 5.5e-17), (0.9999999865880019, 30, 1.0000000134119982, 6.9e-17)],
)
def test_a_threshold_that_rounds_to_all_records_leaves_a_little_risk(
    p: float, n: int, odds: float, truth: float
) -> None:
    answer = ask("membership-record-risk", atom_probability=p, records=n, odds=odds)
    assert answer.lower <= truth <= answer.upper < 1e-14


def test_the_rarest_of_infinitely_many_values_and_new_values_are_at_full_risk() -> None:
    fields: dict[str, Any] = {"records": 1000, "odds": 2.0}
    assert ask("membership-risk-quantile", law="zipf(2)", risk_level=1.0, **fields).lower == 1.0
    assert ask("membership-risk-quantile", law="mixed(0.2,uniform(2))", risk_level=0.9, **fields).lower == 1.0
    heavy = ask("membership-risk-quantile", law="zipf(1.01)", risk_level=1.0 - 1e-9, **fields)
    assert heavy.lower > 0.99
    usual = ask("membership-risk-quantile", law="zipf(2)", risk_level=0.9, **fields)
    atoms = law("zipf(2)").atoms(0, 10)
    place = int(np.argmax(np.cumsum(atoms.p) >= 0.9))
    risk = ask("membership-record-risk", atom_probability=float(atoms.p[place]), **fields)
    assert (usual.lower, usual.upper) == pytest.approx((risk.lower, risk.upper), rel=1e-9)


def rates(law_drawn: RecordDistribution, n: int, threshold: float, repetitions: int) -> tuple[float, float]:
    """Return simulated false and true positive rates of the attack by counts, with one test per data set."""
    rng = np.random.default_rng(11)
    atoms = law_drawn.atoms(0, int(law_drawn.reach(1.0)))
    p = np.repeat(atoms.p, atoms.number.astype(int))
    records = rng.choice(p.size, size=(repetitions, n), p=p / p.sum())
    fresh, member = rng.choice(p.size, size=repetitions, p=p / p.sum()), records[:, 0]
    taken = [(records == z[:, None]).sum(axis=1) >= threshold * n * p[z] for z in (fresh, member)]
    return float(taken[0].mean()), float(taken[1].mean())


@pytest.mark.parametrize("threshold", [0.5, 1.0, 2.0])
def test_the_attack_by_counts_does_in_simulations_what_is_computed(threshold: float) -> None:
    drawn = law("zipf(1.2,30)")
    simulated, computed = rates(drawn, 50, threshold, 40_000), attack_rates(drawn, 50, threshold)
    assert simulated == pytest.approx(computed, abs=4.0 * 0.5 / math.sqrt(40_000))
    gain = computed[1] - threshold * computed[0] if threshold >= 1.0 else None
    if gain is not None:
        assert gain == pytest.approx(advantage("zipf(1.2,30)", 50, threshold), rel=1e-9)


@pytest.mark.parametrize("text", ["atoms(0.5,0.3,0.2)", "bernoulli(0.1)", "mixed(0.2,atoms(0.7,0.3))"])
def test_the_rates_of_the_best_attack_are_the_hull_of_all_attacks(text: str) -> None:
    """Every set of pairs of a count and a value is an attack; linear programming finds the best."""
    n, drawn = 4, law(text)
    atoms = drawn.atoms(0, int(drawn.reach(1.0)))
    pairs = [
        (p * float(pmf), p * float(pmf) * k / (n * p))
        for p in np.repeat(atoms.p, atoms.number.astype(int))
        for k, pmf in enumerate(math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1))
    ]
    for x in (0.0, 0.01, 0.1, 0.33, 0.9, 1.0):
        left, found = x, drawn.continuous
        for false, true in sorted(pairs, key=lambda pair: -pair[1] / pair[0]):
            share = min(1.0, left / false)
            left, found = left - share * false, found + share * true
        answer = ask("membership-roc", "membership.roc", law=text, records=n, false_positive_rate=x)
        assert answer.lower <= min(1.0, found) + ROUNDING
        assert answer.upper >= min(1.0, found) - ROUNDING
        assert answer.upper - answer.lower <= 1e-9


def test_the_best_attack_on_infinitely_many_values_is_enclosed() -> None:
    for text in ("geometric(0.5)", "zipf(2)", "zipf(1.2)"):
        for x in (0.01, 0.1, 0.5):
            answer = ask("membership-roc", "membership.roc", law=text, records=100, false_positive_rate=x)
            assert answer.lower - x <= advantage(text, 100) + ROUNDING
            assert answer.upper - answer.lower <= 1e-3
    nothing = ask("membership-roc", "membership.roc", law="zipf(2)", records=100, false_positive_rate=0.0)
    assert nothing.upper <= 1e-6


def test_no_number_of_records_hides_a_continuous_value() -> None:
    fields: dict[str, Any] = {"law": "mixed(0.1,uniform(2))"}
    hidden = ask("membership-records", "membership.planning", **fields, target_advantage=0.2)
    assert worst_advantage(law(fields["law"]), int(hidden.upper), 1.0)[1] <= 0.2
    assert worst_advantage(law(fields["law"]), int(hidden.upper) - 1, 1.0)[0] > 0.2
    assert ask("membership-records", "membership.planning", **fields, target_advantage=0.05).lower == math.inf


# ---------------------------------------------------------------------- bounds


def half_deviations(
    n: int, p: np.ndarray[Any, np.dtype[np.float64]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return half the mean deviation of a relative count over its standard deviation."""
    values, _ = excess(n, p, 1.0 - p, 1.0, 0.0)
    return np.asarray(values / np.sqrt(p * (1.0 - p) / n))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 20, 100, 1000])
def test_the_constants_of_the_mean_deviation_are_sharp(n: int) -> None:
    p = np.linspace(1e-6, 1.0 - 1e-6, 50_001)
    found = half_deviations(n, p)
    assert found.max() <= largest_constant(n) * (1.0 + ROUNDING)
    assert half_deviations(n, np.array([0.5 / n]))[0] == pytest.approx(largest_constant(n), rel=1e-11)
    usual = (p >= 1.0 / n - 1e-15) & (p <= 1.0 - 1.0 / n + 1e-15)
    assert found[usual].min() >= least_constant(n) * (1.0 - ROUNDING)
    assert half_deviations(n, np.array([1.0 / n]))[0] == pytest.approx(least_constant(n), rel=1e-11)


@pytest.mark.parametrize(
    "text", ["uniform(10)", "zipf(1.2,30)", "zipf(3)", "zipf(1.5)", "mixed(0.3,geometric(0.9))"]
)
def test_bounds_by_the_diversity_enclose_the_advantage(text: str) -> None:
    for n in (1, 2, 5, 30, 1000, 10**7):
        truth = advantage(text, n)
        low, high = deviation_bounds(law(text), n)
        assert low - ROUNDING <= truth <= high + ROUNDING
        assert high <= 1.26 * low + ROUNDING or n == 1
        schwarz = ask("membership-advantage", "membership.schwarz", law=text, records=n)
        assert not schwarz.ok or schwarz.upper >= high - ROUNDING


# ---------------------------------------------------------------------- errata of the paper


def test_equal_odds_are_a_share_of_lambda_over_one_plus_lambda() -> None:
    """The proofs of Corollary 15 and Lemma 21 print 1 / (1 + lambda): odds of 1/4 for lambda = 2."""
    fields: dict[str, Any] = {"law": "uniform(10)", "records": 100, "member_weight": 2.0}
    equal = ask("membership-accuracy", **fields, nonmember_share=2.0 / 3.0)
    assert equal.lower == pytest.approx(2.0 / 3.0 * (1.0 + advantage("uniform(10)", 100)), rel=1e-11)
    printed = ask("membership-accuracy", **fields, nonmember_share=1.0 / 3.0)
    assert printed.lower == pytest.approx(4.0 / 3.0 + advantage("uniform(10)", 100, 0.25) / 3.0, rel=1e-11)


def test_the_maximum_of_bits_falls_exactly_like_a_power() -> None:
    """Lemma 22 says o((1-p)^n); it is 2 p (1-p)^n."""
    for p, n in ((0.25, 5), (0.25, 9), (0.1, 14)):
        found = Records.of([1.0 - p, p], n).of_learner(lambda counts: counts[1] > 0)
        assert found == pytest.approx(2.0 * p * (1.0 - p) ** n, rel=1e-11)


def test_the_advantage_at_other_odds_falls_more_slowly_than_every_power_of_e() -> None:
    """Lemma 29 says o(e^-n); Hoeffding's exponent is far smaller."""
    for odds in (0.8, 1.25):
        assert advantage("uniform(2)", 1000, odds) > math.exp(-1000.0 / 20.0)
        assert advantage("uniform(2)", 1000, odds) < 2.0 * math.exp(-2000.0 * 0.25 * (1.0 - odds) ** 2)


def test_the_interval_of_the_diversity_is_not_widest_at_one_half() -> None:
    """The remark on Lemma 24 says that it shrinks as the largest probability moves away from 1/2."""

    def width(most: float) -> float:
        whole = int(1.0 / most + 1e-12)
        largest = [most, *[(1.0 - most) / 99.0] * 99]
        least = [most] * whole + [1.0 - whole * most] * (whole * most < 1.0 - 1e-12)
        return diversity(law(written(largest)))[0] - diversity(law(written(least)))[0]

    assert [round(width(most), 2) for most in (0.2, 0.25, 0.5)] == [7.26, 7.29, 6.52]


def test_the_corollary_is_never_about_infinitely_many_values() -> None:
    """The condition of the corollary, n > 1 / p for all atoms, cannot hold for infinitely many values."""
    method = find("membership.corollary")()
    problem = find_problem("membership-advantage").from_fields({"law": "zipf(3)", "records": 10**12})
    assert method.applies(problem) == "The corollary needs finitely many atoms and no continuous part."
