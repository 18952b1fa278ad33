r"""Privacy losses from cells of outputs: pairs of Gaussian mixtures, and a few of several steps.

If the ratio grows with the output, the losses of a cell lie between those at its ends. Otherwise they lie
within $K w^2 / 8$ of these, with the width w of the cell: the second derivative of a logarithm of a mixture
of N(m, 1) is the variance of m given the output less 1, so that of the loss is at most $K = D^2 / 4$ in size
with the range D of the means (Popoviciu's inequality).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.parts import Part
from privcore.likelihood_ratio.privacy_loss.distribution import LOST, LossEnds
from privcore.likelihood_ratio.profile import Direction
from privcore.likelihood_ratio.steps import between, sampled
from privcore.numerics.rounding import SUMMED, UNIT

NARROWEST = 1e-5
"""Least width of a cell, in standard deviations; probabilities of narrower cells would lack digits."""
SURE = 290.0
"""Largest lower end of a loss if components of weight 1e-280 are left out. Their share in a density is above
1e-140 with a probability of at most 1e-140 (Markov), and otherwise changes a loss up to 290 by 1e-14."""
MOST_TERMS = 2**24
"""Largest number of cells times components of a mixture."""


def losses_of_parts(
    parts: Sequence[Part], atom: float, direction: Direction, cells: int, tail: float
) -> LossEnds:
    """Return the ends of a loss that is given on disjoint intervals of outputs, and is 0 elsewhere.

    Args:
        parts: The intervals, as for `parts.bracket_of`.
        atom: Mass of the outputs with the loss 0 outside the intervals.
        direction: Direction.
        cells: About the number of cells.
        tail: Mass that may lie outside the cells.
    """
    found = [_cells(part, direction, cells, tail) for part in parts]
    low, high, mass = (np.concatenate(each) for each in zip(*(each[:3] for each in found), strict=True))
    error = max(each[3] for each in found)
    return LossEnds.of_cells(np.append(low, 0.0), np.append(high, 0.0), np.append(mass, atom), error)


def _cells(part: Part, direction: Direction, cells: int, tail: float) -> tuple[Array, Array, Array, float]:
    """Return the least and the largest losses of cells, their masses, and the error of these."""
    mixture = part.p if direction == "remove" else part.q
    end = 0.5 - float(scipy.special.ndtri_exp(math.log(tail)))
    least, most = mixture.extent(tail)
    terms = len(part.p.means) + len(part.q.means)
    cuts = _cuts(part, least - end, most + end, min(cells, MOST_TERMS // terms))
    before, after = ([] if math.isfinite(side) else [side] for side in (part.low, part.high))
    edges, at = np.concatenate((before, cuts, after)), part.log_ratio(cuts)
    q, p, more = part.masses(edges[:-1], edges[1:])
    far, error = part.precision(cuts)
    slack = 32.0 * UNIT * (1.0 + far * far) + 2.0 * part.error
    if part.increasing:
        least_loss = math.log(part.least) if part.least > 0.0 else -math.inf
        ends = np.concatenate(([least_loss] * len(before), at, [math.inf] * len(after)))
        left, right = ends[:-1] - slack, ends[1:] + slack
    else:
        spread = max(mixture.means[-1] - mixture.means[0] for mixture in (part.p, part.q))
        bend = np.square(spread * np.diff(edges)) / 32.0 + slack
        ends = np.concatenate(([0.0] * len(before), at, [0.0] * len(after)))
        left, right = np.minimum(ends[:-1], ends[1:]) - bend, np.maximum(ends[:-1], ends[1:]) + bend
    low, high, mass = (left, right, p) if direction == "remove" else (-right, -left, q)
    return np.minimum(low, SURE) if part.cut else low, high, mass, error + more


def _cuts(part: Part, low: float, high: float, cells: int) -> Array:
    """Return the ends of cells on an interval: half of them of equal widths, half of equal losses."""
    low, high = max(part.low, low), min(part.high, high)
    if not low < high:  # the outputs that matter lie outside the interval
        low = high = part.low if math.isfinite(part.low) else part.high
    z = np.linspace(low, high, cells // 2 + 1)
    rising = np.maximum.accumulate(part.log_ratio(z))
    inner = np.interp(np.linspace(rising[0], rising[-1], cells // 2 + 1), rising, z)
    ends = [end for end in (part.low, part.high) if math.isfinite(end)]
    cuts: Array = np.unique(np.concatenate((z, inner, ends)))
    cuts = cuts[np.append(True, np.diff(cuts) > NARROWEST)]
    if ends and part.high in ends:
        cuts[-1] = part.high
    return cuts


def losses_of_one_step(mu: float, steps: int, direction: Direction, cells: int, tail: float) -> LossEnds:
    r"""Return the ends of the loss of Gaussian steps if a random one uses the example.

    The ratio is the mean of the ratios $e^{l_i}$ of all t steps. Under P, one of them is drawn from P. So the
    loss is at least $l_1 - \ln t$; and unless another $l_i$ is above c, it is at most the logarithm of
    $e^{l_1} + (t - 1) e^c$, less $\ln t$. Under Q, let m be the largest $l_i$. The loss $-\ln X$ is at most
    $\ln t - m$. The mean of X given m is $e^m (1 + \rho) / t$ with
    $\rho = (t - 1)\, e^{-m} \Phi(z - \mu) / \Phi(z)$ and $m = \mu z - \mu^2 / 2$. It belongs to a
    post-processing, and grows with m.

    Args:
        mu: Distance of the means of a step, in standard deviations; the ends are close if it is large.
        steps: Number of steps t, at least 2.
        direction: Direction.
        cells: Number of cells.
        tail: Mass that may lie outside the cells.
    """
    log_steps, log_rest = math.log(steps), math.log(steps - 1.0)
    top = -float(scipy.special.ndtri_exp(math.log(tail) - log_steps))
    if direction == "remove":
        z = np.linspace(-top, top, cells)
        loss = mu * z + 0.5 * mu * mu
        mass = between(np.append(-np.inf, z), np.append(z, np.inf))
        most = np.append(np.logaddexp(loss, mu * top - 0.5 * mu * mu + log_rest) - log_steps, np.inf)
        least = np.append(-np.inf, loss - log_steps)
        outside = tail * (1.0 + SUMMED) + LOST
        relative = _narrow_error(z)
    else:
        z, mass, relative = _largest_normal(steps, cells, tail)
        largest = mu * z - 0.5 * mu * mu
        log_rho = log_rest - largest + scipy.special.log_ndtr(z - mu) - scipy.special.log_ndtr(z)
        most = np.append(np.inf, log_steps - largest)
        least = np.append(log_steps - largest - np.logaddexp(0.0, log_rho), -np.inf)
        outside = LOST
    slack = 32.0 * UNIT * (1.0 + (mu + abs(top)) ** 2)
    return LossEnds.of_cells(least - slack, most + slack, mass, relative, outside)


def losses_of_opposite_steps(mu: float, steps: int, cells: int, tail: float) -> LossEnds:
    r"""Return the ends of the loss of Gaussian steps if a random one has the opposite gradient.

    It is the pair of the means, over the t steps, of $N(\mu e_j)$ and of $N(-\mu e_j)$, with the loss
    $\ln \sum_j e^{\mu z_j} - \ln \sum_j e^{-\mu z_j}$ in both directions. Under P, $z_1$ has the mean
    $\mu$. Let m be the largest $-z_j$ of the others. The loss is at least
    $\mu z_1 - \ln(e^{-\mu z_1} + (t - 1) e^{\mu m})$, and at most
    $\ln(e^{\mu z_1} + (t - 1) e^{\mu c}) - \mu m$ unless another $z_j$ is above c.

    Args:
        mu: Distance of the means of a step from 0, in standard deviations; the ends are close if it is large.
        steps: Number of steps t, at least 2.
        cells: About the number of cells.
        tail: Mass that may lie outside the cells.
    """
    size, rest = min(1024, math.isqrt(16 * cells)), steps - 1
    top = -float(scipy.special.ndtri_exp(math.log(tail) - math.log(rest)))
    own = np.linspace(-top, top, size)
    own_mass = between(np.append(-np.inf, own), np.append(own, np.inf))
    z, largest_mass, error = _largest_normal(rest, size, tail)
    left, right = mu * np.append(-np.inf, mu + own), mu * np.append(mu + own, np.inf)
    low, high = mu * np.append(-np.inf, z), mu * np.append(z, np.inf)
    log_rest = math.log(rest)
    with np.errstate(invalid="ignore"):  # infinite ends
        least = left[:, None] - np.logaddexp(-left[:, None], high[None, :] + log_rest)
        most = np.logaddexp(right, mu * top + log_rest)[:, None] - low[None, :]
    slack = 32.0 * UNIT * (1.0 + (2.0 * mu + top) ** 2)
    mass = np.multiply.outer(own_mass, largest_mass).ravel()
    return LossEnds.of_cells(
        np.nan_to_num(least.ravel(), nan=-np.inf, neginf=-np.inf, posinf=np.inf) - slack,
        np.nan_to_num(most.ravel(), nan=np.inf, neginf=-np.inf, posinf=np.inf) + slack,
        mass,
        error + _narrow_error(own),
        tail * (1.0 + SUMMED) + LOST,
    )


def _largest_normal(count: int, cells: int, tail: float) -> tuple[Array, Array, float]:
    """Return ends of cells of the largest of normal numbers, the masses between them, and their error."""
    top = -float(scipy.special.ndtri_exp(math.log(tail) - math.log(count)))
    z = np.linspace(float(scipy.special.ndtri_exp(math.log(tail) / count)), top, cells)
    below = count * scipy.special.log_ndtr(z)
    rises = count * np.log1p(between(z[:-1], z[1:]) / scipy.special.ndtr(z[:-1]))
    mass = np.concatenate((np.exp(below[:1]), np.exp(below[:-1]) * np.expm1(rises), -np.expm1(below[-1:])))
    return z, mass, _narrow_error(z) * (2.0 + float(np.max(rises)))


def losses_of_chosen_steps(
    mu: float, chosen: int, steps: int, direction: Direction, cells: int, tail: float
) -> LossEnds:
    r"""Return ends of the loss of Gaussian steps if k random ones use the example; they are not close.

    The ratio is the mean, over all choices of k of t steps, of the products of their ratios. Under P it is at
    least the product of the chosen ones over $\binom tk$. Under Q it is at most $e^{k m}$ with the largest
    loss m. Revealing the choice gives the upper end.

    Args:
        mu: Distance of the means of a step, in standard deviations.
        chosen: Number k of steps that use the example.
        steps: Number of steps t, larger than k.
        direction: Direction.
        cells: Number of cells.
        tail: Mass that may lie outside the cells.
    """
    revealed = Part(sampled(1.0, math.sqrt(chosen) * mu), sampled(1.0, 0.0))
    ends = losses_of_parts((revealed,), 0.0, direction, cells, tail)
    if direction == "remove":
        terms = [float(scipy.special.gammaln(n + 1.0)) for n in (steps, chosen, steps - chosen)]
        moved = (terms[0] - terms[1] - terms[2]) + SUMMED * sum(terms)
        return LossEnds(replace(ends.below, loss=ends.below.loss - moved), ends.above)
    below = losses_of_one_step(mu, steps, direction, cells, tail).below
    return LossEnds(replace(below, loss=chosen * (below.loss - math.log(steps) - SUMMED)), ends.above)


def _narrow_error(z: Array) -> float:
    """Return the relative error of the probabilities of cells between neighbours, as in `parts`."""
    far, narrow = float(np.max(np.abs(z))), min(1.0, float(np.min(np.diff(z))))
    return UNIT * (1024.0 + 64.0 * far * far + (128.0 + 32.0 * far) / narrow)
