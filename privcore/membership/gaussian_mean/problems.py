"""Questions about attacks on the mean of Gaussian records, or on a regression on them."""

import math
from typing import Annotated

from privcore.membership import params as membership_params
from privcore.membership.gaussian_mean.gamma_ratio import mean_norm
from privcore.membership.problem import AdvantageProblem, MembershipProblem
from privcore.problem import falls, grows, proved

_NESTED = "The sets of sufficient numbers of records are nested."
_NOISIER = "Gaussian noise on the release lowers its correlation with a record to any smaller value."


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


class MembershipMeanRecords(MembershipProblem):
    """Least number of Gaussian records whose mean allows no attack above the tolerated advantage.

    At odds 1, and so at all odds. The noise is that of `membership-mean-advantage`.
    """

    name = "membership-mean-records"
    asks = "records"
    whole = True
    monotone = proved(
        coordinates=grows("An attack may ignore coordinates."),
        release_noise=falls(_NOISIER),
        target_advantage=falls(_NESTED),
    )

    coordinates: Annotated[int, membership_params.COORDINATES]
    target_advantage: Annotated[float, membership_params.TARGET_ADVANTAGE]
    release_noise: Annotated[float, membership_params.RELEASE_NOISE] = 0.0

    @property
    def rate_constant(self) -> float:
        """Constant of Theorem 13: half of the mean norm of a standard normal vector."""
        return 0.5 * mean_norm(self.coordinates)


class MembershipRateAdvantage(AdvantageProblem):
    """Largest advantage of an attack on a function of a mean, if the constant of Theorem 13 is known.

    The learner averages a function of each record in d coordinates, and releases any function of the average.
    The constant depends on the distribution of a record; for Gaussian records it is E|z| / 2.
    """

    name = "membership-rate-advantage"

    rate_constant: Annotated[float, membership_params.RATE_CONSTANT]
    coordinates: Annotated[int, membership_params.COORDINATES]
    records: Annotated[int, membership_params.RECORDS]


class MembershipRateRecords(MembershipProblem):
    """Least number of records at which no attack on a function of a mean exceeds the tolerated advantage.

    The learner and the constant are those of `membership-rate-advantage`.
    """

    name = "membership-rate-records"
    asks = "records"
    whole = True
    monotone = proved(target_advantage=falls(_NESTED))

    rate_constant: Annotated[float, membership_params.RATE_CONSTANT]
    coordinates: Annotated[int, membership_params.COORDINATES]
    target_advantage: Annotated[float, membership_params.TARGET_ADVANTAGE]


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
