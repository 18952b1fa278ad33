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
    """Largest advantage of an attack on the mean of n Gaussian records, with Gaussian noise or without.

    The noise has tau times the covariance root of a record. The advantage is the distance of the joint law of
    release and record from the product of their laws, in the hockey-stick divergence of these odds: 0 is
    blind and 1 is certain.
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
        r"""What the inverse squared correlation exceeds 1 by, $n - 1 + n^2 \tau^2$."""
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

    The attack knows the true coefficients, the noise and the law of the features, whatever these are. Where
    there are no more records than features, the regression interpolates.
    """

    name = "membership-regression-advantage"

    coordinates: Annotated[int, membership_params.COORDINATES]
    records: Annotated[int, membership_params.RECORDS]
    odds: Annotated[float, membership_params.ODDS] = 1.0

    @property
    def interpolates(self) -> bool:
        """Whether the training residuals vanish."""
        return self.coordinates >= self.records
