"""Questions about attacks on the mean of Gaussian records, or on a regression on them."""

import math
from dataclasses import dataclass
from typing import Annotated

from privcore.membership import params as membership_params
from privcore.membership.problem import AdvantageProblem
from privcore.problem import falls, grows, proved

_NOISIER = "Gaussian noise on the release lowers its correlation with a record to any smaller value."


@dataclass(frozen=True, kw_only=True)
class MembershipMeanAdvantage(AdvantageProblem):
    """Largest advantage of an attack on the mean of n Gaussian records, with or without Gaussian noise.

    The noise is tau times a Gaussian vector with the covariance of a record. The advantage is the
    hockey-stick divergence, at these odds, between the joint distribution of release and record and the
    product of their distributions: 0 is blind guessing, 1 is certainty.
    """

    name = "membership-mean-advantage"
    monotone = proved(
        coordinates=grows("An attack may ignore coordinates."),
        records=falls(_NOISIER),
        release_noise=falls(_NOISIER),
    )

    coordinates: Annotated[int, membership_params.COORDINATES]
    records: Annotated[int, membership_params.RECORDS]
    release_noise: Annotated[float, membership_params.RELEASE_NOISE] = 0.0
    odds: Annotated[float, membership_params.ODDS] = 1.0

    @property
    def surplus(self) -> float:
        r"""Inverse squared correlation minus 1, $n - 1 + n^2 \tau^2$."""
        return self.records - 1 + (self.records * self.release_noise) ** 2

    @property
    def correlation(self) -> float:
        """Correlation of a coordinate of the release with that of a training record."""
        return 1.0 / math.sqrt(1.0 + self.surplus)

    @property
    def information(self) -> float:
        """Mutual information of the release and a training record, in nats."""
        if self.surplus == 0.0:
            return math.inf
        if self.surplus < 1e-16:
            return -0.5 * self.coordinates * math.log(self.surplus)
        return 0.5 * self.coordinates * math.log1p(1.0 / self.surplus)


@dataclass(frozen=True, kw_only=True)
class MembershipRegressionAdvantage(AdvantageProblem):
    """Largest advantage of an attack on the coefficients of least squares, for Gaussian features and noise.

    The true coefficients, the variance of the noise and the distribution of the features are arbitrary and
    known to the attack. If there are no more records than features, the regression interpolates.
    """

    name = "membership-regression-advantage"

    coordinates: Annotated[int, membership_params.COORDINATES]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0

    @property
    def interpolates(self) -> bool:
        """Whether the training residuals vanish."""
        return self.coordinates >= self.records
