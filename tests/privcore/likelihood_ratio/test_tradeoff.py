"""Trade-off curves against exact sums of small distributions, closed forms and reference values."""

import csv
import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from privcore.allocation.poisson import poisson
from privcore.likelihood_ratio.distribution import RatioBracket, RatioDistribution, Resolution
from privcore.likelihood_ratio.profile import (
    delta_upper,
    mu_lower,
    mu_upper,
    powers_lower,
    powers_upper,
    rates_lower,
    rates_upper,
)
from privcore.likelihood_ratio.questions import (
    AdvantageQuestion,
    MuQuestion,
    PowerQuestion,
    Question,
    RateQuestion,
    accuracy_bounds,
    accuracy_question,
    enclose,
    powering,
    precision_bounds,
)
from privcore.likelihood_ratio.ratios import Composed, Gaussian, Ratio, Sampled
from privcore.likelihood_ratio.steps import lognormal

FINE = Resolution(fineness=0.02, tail=1e-30)
RATES = np.array([1e-100, 1e-30, 1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9, 1.0 - 1e-6])
ADJACENCIES = ("remove", "add", "add-remove")
Exact = list[tuple[Fraction, Fraction]]
"""Outcomes with their masses under Q and P, in order of rising P / Q."""


def drawn(seed: int) -> Exact:
    """Return the outcomes of a random pair; some are impossible under P, or under Q."""
    rng = random.Random(seed)
    n = rng.randrange(3, 9)
    q = [Fraction(rng.randrange(1, 60)) for _ in range(n)]
    p = [Fraction(rng.randrange(1, 60)) for _ in range(n)]
    if rng.random() < 0.5:
        p[0] = Fraction(0)
    if rng.random() < 0.5:
        q[-1] = Fraction(0)
    pairs = [(a / sum(q), b / sum(p)) for a, b in zip(q, p, strict=True)]
    return sorted(pairs, key=lambda pair: (pair[0] == 0, pair[1] / pair[0] if pair[0] else 0))


def as_distribution(pair: Exact) -> RatioDistribution:
    return RatioDistribution(
        x=np.array([float(p / q) for q, p in pair if q]),
        p=np.array([float(q) for q, _ in pair if q]),
        infinite=float(sum((p for q, p in pair if not q), Fraction(0))),
        mass_error=2.0**-52,
        value_error=2.0**-52,
    )


def exact_power(pair: Exact, rate: Fraction, direction: str) -> Fraction:
    """Return the power of the best randomised test, which rejects outcomes in order of their ratio."""
    order = [(q, p) for q, p in reversed(pair)] if direction == "remove" else [(p, q) for q, p in pair]
    power = Fraction(0)
    for null, alternative in order:
        share = min(Fraction(1), rate / null) if null else Fraction(1)
        power += share * alternative
        rate -= share * null
    return power


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("seed", range(30))
def test_rates_of_small_distributions_are_enclosed_to_the_last_digits(seed: int, direction: str) -> None:
    pair = drawn(seed)
    law = as_distribution(pair)
    rng = random.Random(seed)
    other = "add" if direction == "remove" else "remove"
    for _ in range(20):
        rate = Fraction(rng.choice([rng.random(), rng.random() * 1e-6, 1.0 - rng.random() * 1e-6]))
        at = np.array([float(rate)])
        power = exact_power(pair, rate, direction)
        low, high = powers_lower(law, at, direction)[0], powers_upper(law, at, direction)[0]
        assert low <= power <= high <= low + 1e-12
        # the smallest false positive rate at a power is a false negative rate of the other order
        smallest = 1 - exact_power(pair, 1 - rate, other)
        low, high = rates_lower(law, at, direction)[0], rates_upper(law, at, direction)[0]
        assert low <= smallest <= high <= low * (1.0 + 1e-11) + 1e-13


@pytest.mark.parametrize("seed", range(10))
def test_errors_of_masses_values_and_ends_are_covered(seed: int) -> None:
    pair, rng = drawn(seed), random.Random(seed)
    law = as_distribution(pair)
    error = 10.0 ** rng.uniform(-8.0, -1.0)
    moved = np.sort([rng.uniform(-error, error) for _ in law.x])
    erring = replace(law, p=law.p * np.exp(moved), mass_error=2.0 * error)
    scaled = replace(law, x=law.x * np.exp(moved), value_error=2.0 * error)
    shift = error * np.arange(law.x.size)
    drifted = replace(
        law,
        x=law.x + shift,
        drift_remove=float(law.p @ shift),
        drift_add=float(law.p[1:] @ (shift[1:] / law.x[1:])),
    )
    for computed in (erring, scaled, drifted):
        for direction in ("remove", "add"):
            for rate in (1e-6, 0.01, 0.3, 0.9, 1.0 - 1e-6):
                at, power = np.array([rate]), exact_power(pair, Fraction(rate), direction)
                other = "add" if direction == "remove" else "remove"
                smallest = 1 - exact_power(pair, 1 - Fraction(rate), other)
                assert powers_lower(computed, at, direction)[0] <= power
                assert power <= powers_upper(computed, at, direction)[0]
                assert rates_lower(computed, at, direction)[0] <= smallest
                assert smallest <= rates_upper(computed, at, direction)[0]
            for smallest_rate in (1e-6, 0.01, 0.3):
                mu = exact_mu(pair, Fraction(smallest_rate), direction)
                assert mu_lower(computed, smallest_rate, direction) <= mu
                assert mu <= mu_upper(computed, smallest_rate, direction)


def exact_mu(pair: Exact, smallest: Fraction, direction: str) -> float:
    """Return the largest mu at the vertices of the trade-off curve and at both ends of the range."""
    rates, total = [smallest, 1 - smallest], Fraction(0)
    for null in [q for q, _ in reversed(pair)] if direction == "remove" else [p for _, p in pair]:
        total += null
        rates += [total] if smallest < total < 1 - smallest else []
    powers = [exact_power(pair, rate, direction) for rate in rates]
    return max(
        math.inf if power == 1 else float(quantile(power) - quantile(rate))
        for power, rate in zip(powers, rates, strict=True)
    )


def test_a_distribution_whose_errors_exceed_its_masses_proves_nothing() -> None:
    law = replace(as_distribution(drawn(3)), mass_error=2.0)
    for adjacency in ADJACENCIES:
        assert np.array_equal(powers_upper(law, RATES, adjacency), np.ones(RATES.size))
        assert np.array_equal(powers_lower(law, RATES, adjacency), RATES)
        assert np.array_equal(rates_lower(law, RATES, adjacency), np.zeros(RATES.size))
        assert np.array_equal(rates_upper(law, RATES, adjacency), RATES)
        assert (mu_lower(law, 0.01, adjacency), mu_upper(law, 0.01, adjacency)) == (0.0, math.inf)


def quantile(probability: mp.mpf | Fraction | float) -> mp.mpf:
    with mp.workdps(40):
        if isinstance(probability, Fraction):
            probability = mp.mpf(probability.numerator) / probability.denominator
        return -mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(probability))


def gaussian_power(rate: float, mu: float) -> mp.mpf:
    with mp.workdps(130):  # 1 - 2 a must not lose the digits of a
        return mp.ncdf(-mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(rate)) + mu)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mu", [0.03, 0.4, 1.0, 3.0, 7.0])
def test_the_gaussian_trade_off_is_enclosed_at_many_rates(mu: float, adjacency: str) -> None:
    bracket = lognormal(mu, replace(FINE, tail=1e-100))
    low, high = powers_lower(bracket.lower, RATES, adjacency), powers_upper(bracket.upper, RATES, adjacency)
    least, most = rates_lower(bracket.upper, RATES, adjacency), rates_upper(bracket.lower, RATES, adjacency)
    for k, rate in enumerate(RATES):
        assert low[k] <= gaussian_power(rate, mu) <= high[k]
        assert rate < 1e-20 or high[k] <= 1.01 * low[k]
        assert least[k] <= gaussian_power(rate, -mu) <= most[k]
        assert least[k] < 1e-20 or most[k] <= 1.02 * least[k]


@pytest.mark.parametrize("mu", [0.03, 0.4, 1.0, 3.0, 7.0])
def test_mu_of_the_gaussian_mechanism_does_not_depend_on_the_smallest_rate(mu: float) -> None:
    bracket = lognormal(mu, FINE)
    for smallest in (0.4, 1e-2, 1e-6, 1e-12):
        for adjacency in ADJACENCIES:
            found = mu_lower(bracket.lower, smallest, adjacency), mu_upper(bracket.upper, smallest, adjacency)
            assert found[0] <= mu <= found[1]
            assert found[1] <= 1.001 * found[0]


def sampled_power(q: float, s: float, rate: float, direction: str) -> mp.mpf:
    """Return the power of the best test of one Poisson step, whose ratio grows with its output."""
    with mp.workdps(40):
        if direction == "remove":
            return (1 - q) * mp.mpf(rate) + q * gaussian_power(rate, s)

        def null(cut: mp.mpf) -> mp.mpf:
            return (1 - q) * mp.ncdf(cut) + q * mp.ncdf(cut - s)

        low, high = mp.mpf(-45), mp.mpf(45)
        for _ in range(140):
            middle = (low + high) / 2
            low, high = (middle, high) if null(middle) < rate else (low, middle)
        return mp.ncdf(low)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("q", "s"), [(0.1, 1.0), (0.01, 2.0), (0.6, 0.3), (1e-4, 3.0)])
def test_one_sampled_step_is_enclosed_in_both_orders(q: float, s: float, direction: str) -> None:
    bracket = poisson(s, q, 1, FINE)
    rates = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.99])
    low, high = powers_lower(bracket.lower, rates, direction), powers_upper(bracket.upper, rates, direction)
    for k, rate in enumerate(rates):
        truth = sampled_power(q, s, float(rate), direction)
        assert low[k] <= truth <= high[k] <= 1.001 * low[k]


@pytest.mark.parametrize("times", [1, 100, 1000])
def test_curves_rise_and_bend_down_and_their_ends_do_not_cross(times: int) -> None:
    bracket = poisson(1.0, 0.05, times, Resolution(fineness=0.05, tail=1e-20))
    rates = np.linspace(0.001, 0.999, 400)
    for adjacency in ("remove", "add"):
        low, high = (
            powers_lower(bracket.lower, rates, adjacency),
            powers_upper(bracket.upper, rates, adjacency),
        )
        assert np.all(low <= high)
        assert np.all(low >= rates)
        for curve in (low, high):
            assert np.all(np.diff(curve) > 0.0)
            assert np.all(np.diff(curve, 2) < 1e-9)
    both = powers_upper(bracket.upper, rates, "add-remove")
    each = [powers_upper(bracket.upper, rates, direction) for direction in ("remove", "add")]
    assert np.array_equal(both, np.maximum(*each))


def test_the_rate_at_the_power_of_a_rate_is_that_rate() -> None:
    bracket = poisson(1.0, 0.05, 100, Resolution(fineness=0.05, tail=1e-20))
    rates = np.array([1e-9, 1e-4, 0.01, 0.2, 0.7])
    for adjacency in ADJACENCIES:
        for law in (bracket.lower, bracket.upper):
            back = rates_lower(law, powers_lower(law, rates, adjacency), adjacency)
            assert back == pytest.approx(rates, rel=1e-6)
            assert np.all(back <= rates)
            assert np.all(rates_upper(law, powers_upper(law, rates, adjacency), adjacency) >= rates)


def test_mu_with_its_smallest_rate_has_the_published_figures() -> None:
    bracket = poisson(1.0, 0.01, 1000, Resolution(fineness=0.05, tail=1e-20))
    for smallest, figure in ((1e-2, 0.433), (1e-4, 0.454), (1e-6, 0.474), (1e-10, 0.522)):
        low, high = mu_lower(bracket.lower, smallest, "remove"), mu_upper(bracket.upper, smallest, "remove")
        assert low - 0.0005 <= figure <= high + 0.0005
        assert high <= 1.01 * low
        both = mu_lower(bracket.lower, smallest, "add-remove")
        assert both == max(low, mu_lower(bracket.lower, smallest, "add"))


def test_mu_is_the_largest_at_any_rate_of_its_range() -> None:
    bracket = poisson(1.5, 0.02, 300, Resolution(fineness=0.05, tail=1e-20))
    rng = np.random.default_rng(4)
    for direction in ("remove", "add"):
        top = mu_upper(bracket.upper, 1e-6, direction)
        rates = np.exp(rng.uniform(math.log(1e-6), math.log(0.5), 40))
        rates = np.concatenate((rates, 1.0 - rates))
        powers = powers_lower(bracket.lower, rates, direction)
        found = [float(quantile(power) - quantile(rate)) for power, rate in zip(powers, rates, strict=True)]
        assert max(found) <= top
        least = mu_lower(bracket.lower, 1e-6, direction)
        assert least <= top <= 1.01 * least


TABLE = (Path(__file__).parents[1] / "data" / "runs.csv").read_text()
QUANTITIES = ("tpr", "mu_at_fpr", "advantage", "bayes_accuracy")
ROWS = [row for row in csv.DictReader(TABLE.splitlines()) if row["quantity"] in QUANTITIES]


def test_the_reference_values_cover_every_quantity() -> None:
    assert {row["id"] for row in ROWS} == {f"R{k}" for k in (*range(51, 59), 70, 71, 72)}


def law_of(row: dict[str, str]) -> Ratio:
    setting = json.loads(row["params"])
    s = 1.0 / setting["sigma"]
    if row["scheme"] == "unamplified":
        return Gaussian(s * math.sqrt(setting["steps"]))
    return Composed(Sampled(Gaussian(s), setting["rate"]), setting["steps"])


def answered(law: Ratio, question: Question, tolerance: float, most: float) -> tuple[float, float]:
    low, high, _ = enclose(
        law.bracket, question, tolerance, copies=law.copies, outer=(0.0, most), combinations=law.combinations
    )
    assert high <= low * (1.0 + tolerance)
    return low, high


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_reference_values_are_enclosed_within_the_tolerance(row: dict[str, str]) -> None:
    setting, law = json.loads(row["params"]), law_of(row)
    truth, digits = float(row["value"]), int(row["digits_or_kind"].split(":")[1])
    if row["quantity"] == "advantage":
        low, high = answered(law, AdvantageQuestion(), 0.002, 1.0)
    elif row["quantity"] == "bayes_accuracy":
        prior = setting["prior"]
        low, high = accuracy_bounds(prior, *answered(law, accuracy_question(prior), 0.002, 1.0))
    else:
        rate = setting["fpr"]
        low, high = answered(law, PowerQuestion(at=rate, adjacency="remove"), 0.002, 1.0)
        if row["quantity"] == "mu_at_fpr":
            low, high = (float(quantile(power) - quantile(rate)) for power in (low, high))
    slack = 0.5 * 10.0 ** -(digits - 1) * truth
    assert low - slack <= truth <= high + slack
    assert high - low <= 0.01 * truth


def test_every_question_is_answered_within_its_tolerance() -> None:
    law = Composed(Sampled(Gaussian(1.0), 0.02), 200)
    for adjacency in ADJACENCIES:
        for rate in (1e-12, 1e-3, 0.3):
            answered(law, PowerQuestion(at=rate, adjacency=adjacency), 0.01, 1.0)
            answered(law, RateQuestion(at=rate, adjacency=adjacency), 0.01, 1.0)
        for smallest in (1e-12, 1e-3, 0.3):
            answered(law, MuQuestion(at=smallest, adjacency=adjacency), 0.01, math.inf)
    answered(law, AdvantageQuestion(), 0.001, 1.0)
    for prior in (0.3, 0.5, 0.6):
        answered(law, accuracy_question(prior), 0.01, 1.0)


def test_a_falling_quantity_takes_its_lower_end_from_the_dominating_distribution() -> None:
    bracket = lognormal(1.0, Resolution(fineness=0.3, tail=1e-6))
    question = RateQuestion(at=0.5, adjacency="remove")
    low, high = question.ends(bracket)
    assert (low, high) == (question.upper(bracket.upper), question.lower(bracket.lower))
    assert low < float(gaussian_power(0.5, -1.0)) < high


def test_the_advantage_uses_the_direction_with_the_smaller_error() -> None:
    law = as_distribution(drawn(1))
    for drifted in (replace(law, drift_remove=0.01), replace(law, drift_add=0.01)):
        assert AdvantageQuestion().upper(drifted) == pytest.approx(AdvantageQuestion().upper(law), abs=1e-12)
        assert AdvantageQuestion().lower(drifted) == pytest.approx(AdvantageQuestion().lower(law), abs=1e-12)


@pytest.mark.parametrize("prior", [1e-9, 0.3, 0.5, 0.7, 1.0 - 1e-9])
def test_the_accuracy_of_the_gaussian_mechanism_is_that_of_its_best_threshold(prior: float) -> None:
    mu = 1.3
    with mp.workdps(40):
        pi = mp.mpf(prior)
        cut = mu / mp.mpf(2) + mp.log((1 - pi) / pi) / mu
        truth = pi * mp.ncdf(mu - cut) + (1 - pi) * mp.ncdf(cut)
    law = Gaussian(mu)
    delta = enclose(law.bracket, accuracy_question(prior), 0.001, 1, (0.0, 1.0), 0)[:2]
    low, high = accuracy_bounds(prior, *delta)
    assert low <= truth <= high <= low * 1.001
    assert low >= max(prior, 1.0 - prior) * (1.0 - 1e-14)


def test_the_precision_is_the_share_of_members_among_those_called_members() -> None:
    low, high = precision_bounds(0.01, 0.001, 0.05, 0.06)
    for end, power in ((low, Fraction(5, 100)), (high, Fraction(6, 100))):
        members, others = Fraction(1, 100) * power, Fraction(99, 100) * Fraction(1, 1000)
        assert end == pytest.approx(float(members / (members + others)), rel=1e-13)
    assert precision_bounds(0.5, 1e-3, 1.0, 1.0)[1] <= 1.0


def test_both_orders_of_a_symmetric_distribution_agree() -> None:
    bracket = lognormal(1.0, FINE)
    rates = np.array([1e-9, 1e-3, 0.3])
    for read, law in ((powers_lower, bracket.lower), (powers_upper, bracket.upper)):
        assert read(law, rates, "remove") == pytest.approx(read(law, rates, "add"), rel=1e-3)


def test_a_closed_form_is_kept_if_ratios_exceed_the_range_of_doubles() -> None:
    def build(res: Resolution) -> RatioBracket:
        return lognormal(40.0, res)

    outer = (0.25, 0.75)
    found = enclose(build, PowerQuestion(at=0.1, adjacency="remove"), 0.01, 1, outer, powering(1))
    assert found[:2] == outer
    assert "range of double precision" in found[2]


def test_a_larger_profile_has_larger_rates() -> None:
    few, many = (poisson(1.0, 0.05, n, Resolution(fineness=0.05, tail=1e-20)) for n in (50, 80))
    assert delta_upper(few.upper, 0.1, "remove") < delta_upper(many.upper, 0.1, "remove")
    for adjacency in ADJACENCIES:
        inner = RATES[2:]
        assert np.all(powers_upper(few.upper, inner, adjacency) < powers_upper(many.upper, inner, adjacency))
        assert np.all(rates_lower(few.upper, inner, adjacency) > rates_lower(many.upper, inner, adjacency))
