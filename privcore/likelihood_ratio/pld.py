"""Conversion of distributions to privacy loss distributions of `dp-accounting`, and back."""

import math
from typing import TYPE_CHECKING

import numpy as np

from privcore.errors import DomainError
from privcore.likelihood_ratio.distribution import RatioDistribution
from privcore.likelihood_ratio.grid import Array, collect, spread
from privcore.numerics.rounding import UNIT

if TYPE_CHECKING:  # the import takes most of a second
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

MOST_LOSSES = 10**7


def to_pld(distribution: RatioDistribution, loss_step: float) -> "PrivacyLossDistribution":
    r"""Return a privacy loss distribution that dominates a given distribution, in both directions.

    Every value is moved to its two neighbours $e^{jh}$ by a mean-preserving spread; the losses are then
    $\pm jh$. Errors by rounding are covered by moving values outwards, by a factor on all masses, and by mass
    at infinity.

    Args:
        distribution: A dominating distribution.
        loss_step: Distance h of two losses, `value_discretization_interval` of `dp-accounting`.

    Raises:
        DomainError: The losses take more than `MOST_LOSSES` steps.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    positive = distribution.x > 0.0
    first = math.floor(math.log(float(distribution.x[positive][0])) / loss_step - 1e-6) - 1
    last = math.ceil(math.log(float(distribution.x[-1])) / loss_step + 1e-6) + 1
    if last - first > MOST_LOSSES:
        raise DomainError(f"Expected at most {MOST_LOSSES} losses, got more with loss_step={loss_step}.")
    losses = np.arange(first, last + 1) * loss_step
    edges = np.append(0.0, np.exp(losses))
    rounding = 4.0 * UNIT * (1.0 + float(np.max(np.abs(losses))))  # of the edges
    shift = distribution.value_error + rounding
    factor = math.exp(distribution.mass_error + shift + 4.0 * (distribution.x.size + 16) * UNIT)

    above, beyond = _on_edges(distribution, math.exp(shift), edges)
    remove = DensePLDPmf(
        loss_step,
        first,
        factor * above[1:] * edges[1:],
        min(1.0, factor * (beyond + distribution.infinite) + distribution.drift_remove),
        True,
    )
    below, _ = _on_edges(distribution, math.exp(-shift), edges)
    add = DensePLDPmf(
        loss_step,
        -last,
        factor * below[:0:-1],
        min(1.0, factor * float(below[0]) + distribution.drift_add),
        True,
    )
    return PrivacyLossDistribution(remove, add)


def _on_edges(distribution: RatioDistribution, factor: float, edges: Array) -> tuple[Array, float]:
    """Return the masses on the edges, with all values times a factor, and the mean moved to infinity."""
    mass, moment = collect(
        distribution.x * factor, distribution.p, np.ones(1), np.ones(1), edges, False, True
    )
    return spread(edges, mass, moment)


def from_pld(pld: "PrivacyLossDistribution") -> RatioDistribution:
    r"""Return a distribution that dominates every pair that a privacy loss distribution dominates.

    Ratios above 1 are taken from its losses in direction remove, those below 1 from direction add: these
    probabilities are accurate, while $e^{-\ell}$ would amplify the rounding of the probability of a negative
    loss. Mass is then moved to restore the total mass 1 and the mean 1, in the direction that raises the
    profile: to infinity, or from 1 to 0.

    Args:
        pld: A pessimistic privacy loss distribution; the distribution is as valid as it is.

    Raises:
        DomainError: The privacy loss distribution is optimistic.
    """
    # dp-accounting has no public view of the probabilities.
    remove, add = pld._pmf_remove.to_dense_pmf(), pld._pmf_add.to_dense_pmf()
    if not (remove._pessimistic_estimate and add._pessimistic_estimate):
        raise DomainError("Expected a pessimistic privacy loss distribution, got an optimistic one.")
    x, p = [np.array([0.0, 1.0])], [np.array([float(add._infinity_mass), 0.0])]
    for pmf, sign in ((remove, 1.0), (add, -1.0)):
        losses = (pmf._lower_loss + np.arange(pmf.size)) * pmf._discretization
        keep = (losses > 0.0) & (pmf._probs > 0.0)
        ratio = np.exp(sign * losses[keep])
        x.append(ratio)
        p.append(pmf._probs[keep] / ratio if sign > 0.0 else pmf._probs[keep])
    return _balanced(np.concatenate(x), np.concatenate(p), float(remove._infinity_mass))


def _balanced(x: Array, p: Array, infinite: float) -> RatioDistribution:
    """Return the distribution with total mass 1 and mean 1; the first two atoms must be those at 0 and 1.

    If rounded losses leave no mass at 1 to be moved, masses are too large by a known factor, and the excess
    of the mean over 1 changes E(1 - kappa X)_+ by at most this excess.
    """
    total = float(np.sum(p))
    p = p / max(1.0, total)
    p[1] += max(0.0, 1.0 - total)
    excess = float(np.sum(p * x)) + infinite - 1.0
    moved = min(max(0.0, excess), float(p[1]))
    p[0], p[1] = p[0] + moved, p[1] - moved
    order = np.argsort(x)
    kept = order[p[order] > 0.0]
    return RatioDistribution(
        x=x[kept],
        p=p[kept],
        infinite=infinite + max(0.0, -excess),
        mass_error=math.log(max(1.0, total)) + 8.0 * (p.size + 16) * UNIT,
        value_error=64.0 * UNIT,
        drift_add=max(0.0, excess - moved),
    )
