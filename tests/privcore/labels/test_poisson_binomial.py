"""The distribution of a sum of labels against exact fractions, down to the far tails."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from privcore.labels.sums.poisson_binomial import FLOOR, binomial, leave_one_out, pmf, relative_error


@pytest.mark.parametrize(("k", "eta"), [(200, 0.125), (90, 0.5), (40, 0.0009765625)])
def test_equal_labels_have_binomial_probabilities_with_small_relative_errors(k: int, eta: float) -> None:
    p = Fraction(eta)
    exact = [comb(k, s) * p**s * (1 - p) ** (k - s) for s in range(k + 1)]
    others = [comb(k - 1, s) * p**s * (1 - p) ** (k - 1 - s) for s in range(k)]
    etas = np.full(k, eta)
    for found, wanted in (
        (pmf(etas), exact),
        (binomial(k, eta), exact),
        (leave_one_out(etas)[0], others),
        (leave_one_out(etas)[-1], others),
    ):
        far = 0
        for probability, truth in zip(found.tolist(), wanted, strict=True):
            if truth > FLOOR:
                far += truth < 1e-12
                assert abs(Fraction(probability) - truth) <= truth * Fraction(relative_error(k))
        assert far > 20
