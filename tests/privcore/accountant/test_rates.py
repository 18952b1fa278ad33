"""True positive rates and mu of the accountant."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event

from privcore.accountant import PrivsweepAccountant
from privcore.errors import DomainError
from privcore.numerics.gaussian import gaussian_rate_bounds

ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
ROWS = list(csv.DictReader((Path(__file__).parents[1] / "data" / "runs.csv").read_text().splitlines()))
RATES = [row for row in ROWS if row["scheme"] == "poisson" and row["quantity"] == "tpr"]


def sampled(noise: float, rate: float, steps: int) -> PrivsweepAccountant:
    accountant = PrivsweepAccountant(ADD)
    accountant.compose(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise)), steps)
    return accountant


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.3])
def test_gaussian_steps_have_their_closed_forms(rate: float) -> None:
    accountant = PrivsweepAccountant(ADD).compose(dp_event.GaussianDpEvent(2.0), 9)
    lower, upper = accountant.get_true_positive_rate_interval(rate)
    exact = gaussian_rate_bounds(rate, 1.5)
    assert lower <= exact[1]
    assert exact[0] <= upper <= lower * (1.0 + 1e-9)
    assert accountant.get_gdp_parameter_interval(1e-3) == pytest.approx((1.5, 1.5), rel=1e-12)


@pytest.mark.parametrize("row", RATES, ids=lambda row: row["id"])
def test_a_rate_of_one_order_is_at_most_that_of_both(row: dict[str, str]) -> None:
    params, value = json.loads(row["params"]), float(row["value"])
    accountant = sampled(params["sigma"], params["rate"], params["steps"])
    lower, upper = accountant.get_true_positive_rate_interval(params["fpr"])
    assert params["fpr"] <= lower <= upper <= lower * 1.02
    assert upper >= value * (1.0 - 1e-4)


def test_pure_steps_multiply_rates_by_at_most_their_ratio() -> None:
    accountant = PrivsweepAccountant(ADD).compose(dp_event.LaplaceDpEvent(2.0), 3)
    lower, upper = accountant.get_true_positive_rate_interval(1e-3)
    assert 1e-3 < lower <= upper <= 1e-3 * math.exp(1.5) * (1.0 + 1e-9)


def test_mu_falls_with_the_smallest_rate_and_is_below_that_without_sampling() -> None:
    accountant = sampled(1.0, 0.01, 1000)
    ends = [accountant.get_gdp_parameter_interval(rate) for rate in (1e-2, 1e-4, 1e-6)]
    for (lower, upper), value in zip(ends, (0.433, 0.454, 0.474), strict=True):
        assert value < lower <= value * 1.03  # which is that of one order; the other one is larger
        assert lower <= upper <= lower * 1.01
    assert ends[-1][1] < math.sqrt(1000.0)
    assert accountant.get_gdp_parameter_estimate([0.1, 1e-4]) == ends[1][1]


def test_rates_have_the_shape_of_the_question() -> None:
    accountant = sampled(1.0, 0.1, 10)
    found = accountant.get_true_positive_rates(np.array([[0.0, 0.01], [0.5, 1.0]]))
    assert found.shape == (2, 2)
    assert found[0, 0] == 0.0
    assert found[1, 1] == 1.0
    assert found[0, 1] == accountant.get_true_positive_rates(0.01)


def test_without_privacy_every_example_is_found() -> None:
    accountant = PrivsweepAccountant(ADD).compose(dp_event.NonPrivateDpEvent())
    assert accountant.get_true_positive_rates(0.1) == 1.0
    assert accountant.get_gdp_parameter_estimate(0.1) == math.inf


def test_without_events_a_test_is_a_guess() -> None:
    assert PrivsweepAccountant(ADD).get_true_positive_rate_interval(0.2) == (0.2, 0.2)
    assert PrivsweepAccountant(ADD).get_gdp_parameter_interval(0.2) == (0.0, 0.0)


def test_rates_outside_their_domains_are_refused() -> None:
    with pytest.raises(DomainError, match="false positive rate"):
        PrivsweepAccountant(ADD).get_true_positive_rates(1.5)
    with pytest.raises(DomainError, match="false positive rate"):
        PrivsweepAccountant(ADD).get_gdp_parameter_interval(0.5)
