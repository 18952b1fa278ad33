"""Security of classifiers of features on a sphere, and of learners that stop at a mean loss."""

import math

import pytest
from scipy.special import betainc

from privcore.membership.learner.overfitting import MembershipStopping
from privcore.membership.learner.problems import MembershipSphereSecurity, MembershipStoppingSecurity
from privcore.membership.learner.sphere import MembershipCaps, MembershipSphere, most_records


@pytest.mark.parametrize("odds", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("dimension", "records"), [(3000, 3), (20_000, 10), (162_755, 11), (10**6, 24)])
def test_the_caps_cover_all_pairs_of_records(dimension: int, records: int, odds: float) -> None:
    asked = MembershipSphereSecurity(sphere_dimension=dimension, records=records, odds=odds)
    found = MembershipCaps().answer(asked, 0).upper
    t = ((dimension + 1) / (3 * records) - 1) / dimension
    pairs = records * (records - 1) / 2 * betainc((dimension - 1) / 2, 0.5, 1 - t * t)
    assert max(1.0, 1.0 / odds) * pairs <= found <= max(1.0, 1.0 / odds) * 50.0 * pairs
    if records <= most_records(dimension):
        assert found <= MembershipSphere().answer(asked, 0).upper


def test_the_published_bound_is_empty_below_162755_features() -> None:
    def bound(dimension: int) -> float:
        asked = MembershipSphereSecurity(sphere_dimension=dimension, records=1)
        return MembershipSphere().answer(asked, 0).upper

    assert bound(162_754) == 1.0 > bound(162_755)
    assert bound(10**6) == pytest.approx((10**6) ** (3 - math.log(10**6) / 4), rel=1e-9)


@pytest.mark.parametrize("dimension", [10, 1000, 162_755, 10**6, 10**9])
def test_the_largest_number_of_records_satisfies_the_condition_of_the_proposition(dimension: int) -> None:
    most, limit = most_records(dimension), math.sqrt(dimension) * math.log(dimension) + 1
    assert 3 * most * limit <= dimension + 1 < 3 * (most + 1) * limit
    asked = MembershipSphereSecurity(sphere_dimension=dimension, records=most + 1)
    assert f"at most {most} records" in str(MembershipSphere().applies(asked))


@pytest.mark.parametrize(
    ("mean_loss", "level", "fresh", "security"),
    [(5e-8, 1e-6, 0.008, 0.058), (0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.25, 0.25), (1.0, 0.5, 0.0, 1.0)],
)
def test_a_learner_that_stops_at_a_mean_loss_leaves_few_losses_above_a_level(
    mean_loss: float, level: float, fresh: float, security: float
) -> None:
    asked = MembershipStoppingSecurity(mean_loss=mean_loss, loss_level=level, fresh_share=fresh)
    assert MembershipStopping().answer(asked, 0).upper == pytest.approx(security, abs=1e-14)
