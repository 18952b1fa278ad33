"""Lower distributions of k out of t against enumeration in exact rational arithmetic."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from privcore.likelihood_ratio.allocated import symmetric
from privcore.likelihood_ratio.allocated.symmetric import _counts, _hypergeometric, chosen
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution, Resolution
from privcore.likelihood_ratio.profile import delta_lower
from privcore.likelihood_ratio.steps import lognormal

FINE = Resolution(fineness=0.02, tail=1e-30)
STEP = {Fraction(1, 2): Fraction(3, 4), Fraction(2): Fraction(3, 16), Fraction(4): Fraction(1, 16)}


def as_law(step: dict[Fraction, Fraction]) -> RatioDistribution:
    values = sorted(step)
    return RatioDistribution(
        x=np.array([float(v) for v in values]),
        p=np.array([float(step[v]) for v in values]),
        mass_error=2.0**-52,
        value_error=2.0**-52,
    )


def enumerated(participations: int, steps: int) -> dict[Fraction, Fraction]:
    """Return the distribution of e_k / C(t, k) from all outcomes of all steps."""
    law: dict[Fraction, Fraction] = defaultdict(Fraction)
    for outcome in itertools.product(STEP.items(), repeat=steps):
        subsets = itertools.combinations([value for value, _ in outcome], participations)
        ratio = sum((math.prod(subset, start=Fraction(1)) for subset in subsets), Fraction(0))
        law[ratio / math.comb(steps, participations)] += math.prod(
            (mass for _, mass in outcome), start=Fraction(1)
        )
    return law


def exact_delta(law: dict[Fraction, Fraction], kappa: Fraction, direction: str) -> Fraction:
    """Return the hockey-stick divergence at e^epsilon = kappa."""
    if direction == "remove":
        return sum((p * max(x - kappa, Fraction(0)) for x, p in law.items()), Fraction(0))
    return sum((p * max(1 - kappa * x, Fraction(0)) for x, p in law.items()), Fraction(0))


CASES = [(1, 1), (1, 2), (2, 2), (1, 3), (2, 3), (3, 3), (2, 4), (2, 5), (4, 5), (3, 6), (6, 6), (2, 7)]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("participations", "steps"), CASES)
def test_a_garbling_stays_below_the_enumerated_profile_and_close(
    participations: int, steps: int, direction: str
) -> None:
    truth = enumerated(participations, steps)
    law = chosen(as_law(STEP), participations, steps, FINE)
    for kappa in (Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(5, 4), Fraction(2), Fraction(9)):
        delta = exact_delta(truth, kappa, direction)
        lower = delta_lower(law, math.nextafter(math.log(kappa), math.inf), direction)
        assert lower <= delta
        assert lower >= 0.999 * float(delta) - 1e-12


@pytest.mark.sampled(7)
@pytest.mark.parametrize("fineness", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(("participations", "steps"), [(2, 4), (3, 6), (4, 7)])
def test_any_cells_give_a_garbling(participations: int, steps: int, fineness: float) -> None:
    truth = enumerated(participations, steps)
    law = chosen(as_law(STEP), participations, steps, Resolution(fineness=fineness, tail=1e-3))
    for direction, kappa in itertools.product(("remove", "add"), (Fraction(3, 4), Fraction(1), Fraction(3))):
        lower = delta_lower(law, math.nextafter(math.log(kappa), math.inf), direction)
        assert lower <= exact_delta(truth, kappa, direction)


@pytest.mark.parametrize("nats", [1.2, 2.0, 4.0])
@pytest.mark.parametrize(("participations", "steps"), [(2, 7), (4, 9), (3, 40), (12, 30), (20, 59)])
def test_counts_that_are_left_out_lower_one_direction_and_raise_the_other_by_no_more_than_their_mean(
    participations: int, steps: int, nats: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two atoms the ratio is a function of the number of larger ones, which is binomial: exact."""
    low, high, p = 0.5, 3.0, 0.8
    base = RatioDistribution(
        x=np.array([low, high]), p=np.array([p, 1.0 - p]), mass_error=2e-16, value_error=2e-16
    )
    law = chosen(base, participations, steps, Resolution(fineness=1e-4, tail=1e-12))
    ups = np.arange(steps + 1)
    masses = binom.pmf(ups, steps, 1.0 - p)
    j = np.arange(participations + 1)
    weights = hypergeom.pmf(j[None, :], steps, ups[:, None], participations)
    values = np.where(weights > 0.0, weights * high**j * low ** (participations - j), 0.0).sum(axis=1)

    monkeypatch.setattr(symmetric, "_counts", lambda n, k, t, _: _counts(n, k, t, nats))
    fewer = chosen(base, participations, steps, Resolution(fineness=1e-4, tail=1e-12))
    lost = 1.0 - float(fewer.p @ fewer.x)
    assert lost <= 4.0 * steps * math.exp(-nats)
    for kappa in (0.3, 0.9, 1.0, 1.5, 4.0):
        remove, add = (float(masses @ np.maximum(x, 0.0)) for x in (values - kappa, 1.0 - kappa * values))
        assert float(fewer.p @ np.maximum(fewer.x - kappa, 0.0)) <= remove + 1e-12
        assert float(fewer.p @ np.maximum(1.0 - kappa * fewer.x, 0.0)) <= add + kappa * lost + 1e-12
        assert float(law.p @ np.maximum(law.x - kappa, 0.0)) == pytest.approx(remove, rel=1e-3, abs=1e-9)


def test_small_parts_leave_out_counts_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    base = RatioDistribution(
        x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]), mass_error=2e-16, value_error=2e-16
    )
    monkeypatch.setattr(symmetric, "_counts", lambda n, k, t, _: _counts(n, k, t, 2.0))
    law = chosen(base, 12, 30, Resolution(fineness=1e-4, tail=1e-12))
    assert 0.01 < 1.0 - float(law.p @ law.x) < 0.9


@pytest.mark.parametrize("nats", [1.5, 5.0, 30.0, 200.0])
@pytest.mark.parametrize(
    ("n", "draws", "steps"), [(1, 1, 2), (1, 9, 10), (3, 5, 8), (40, 100, 10**4), (700, 9, 900)]
)
def test_counts_beyond_the_kept_ones_are_as_unlikely_as_asked(
    n: int, draws: int, steps: int, nats: float
) -> None:
    least, greatest = _counts(n, draws, steps, nats)
    law = hypergeom(steps, n, draws)
    assert law.cdf(least - 1) <= math.exp(-nats)
    assert law.sf(greatest) <= math.exp(-nats)
    assert least <= n * draws / steps <= greatest
    assert 0 <= least <= greatest <= min(n, draws)


def test_a_small_part_keeps_few_counts_and_all_steps_keep_one() -> None:
    assert _counts(64, 100, 10**4, 40.0)[1] < 20
    assert _counts(10**4, 100, 10**4, 40.0) == (100, 100)


def test_what_is_left_out_of_many_participations_is_less_than_the_tail() -> None:
    res = Resolution(fineness=0.2, tail=1e-9)
    base = lognormal(0.4, res).lower
    law = chosen(base, 100, 1000, res, 2.0)
    assert law.p @ law.x == pytest.approx(1.0, abs=2e-9)
    assert law.drift_add >= 1e-9


def test_mass_and_mean_are_kept() -> None:
    res = Resolution(fineness=0.1, tail=1e-20)
    law = chosen(lognormal(1.0, res).lower, 5, 100, res)
    assert law.p.sum() == pytest.approx(1.0, abs=1e-9)
    assert law.p @ law.x == pytest.approx(1.0, abs=1e-9)


def test_more_participations_are_seen_better() -> None:
    res = Resolution(fineness=0.1, tail=1e-20)
    base = lognormal(1.0, res).lower
    deltas = [delta_lower(chosen(base, k, 64, res), 0.5, "add-remove") for k in (1, 2, 4, 8, 16)]
    assert deltas == sorted(deltas)
    assert deltas[0] < 0.5 * deltas[-1]


def test_what_leaves_the_doubles_is_refused_or_left_out_but_never_counted() -> None:
    res = Resolution(fineness=0.2, tail=1e-12)
    step = lognormal(9.0, res).lower
    try:
        law = chosen(step, 200, 200, res)
    except LikelihoodRangeError:
        law = step
    assert np.all(np.isfinite(law.x))
    assert law.p.sum() <= 1.0 + 1e-6
    assert law.p @ law.x <= 1.0 + 1e-6


@pytest.mark.parametrize(
    ("first", "rest", "draws"),
    [(1, 3, 2), (3, 0, 3), (3, 1, 2), (5, 3, 4), (100, 50, 30), (4, 2, 6), (2, 9, 1)],
)
def test_weights_are_hypergeometric(first: int, rest: int, draws: int) -> None:
    size = min(first, draws) + 1
    expected = hypergeom.pmf(np.arange(size), first + rest, first, draws)
    np.testing.assert_allclose(_hypergeometric(first, rest, draws, size), expected, rtol=1e-10, atol=1e-15)
