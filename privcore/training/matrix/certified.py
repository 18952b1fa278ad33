"""Proved lower and upper bounds of matrix mechanisms: docs/matrix.md."""

from dataclasses import replace
from typing import Annotated

from privcore import params
from privcore.answer import Answer
from privcore.likelihood_ratio.correlated.chains import MOST_BLOCKS
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import Question, question_of, requested
from privcore.likelihood_ratio.ratios import Ratio, product
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import SUMMED
from privcore.papers import CHOQUETTE_AMPLIFIED, CHOQUETTE_BANDED, DENISOV
from privcore.training.brackets import Ends, closed_form, enclosed_run, estimated
from privcore.training.matrix.bins import along_chain, bins
from privcore.training.matrix.problems import OF_GROUPS, CorrelatedNoise, MatrixDelta, MatrixEpsilon
from privcore.training.phase import RELATIONS
from privcore.training.samplers import Above, Bounds, poisson

MOST_GROUPS = 8
"""Largest number of groups of the data for which lower ends are computed, those with the longest columns."""
ROUGH = {"epsilon": 0.02, "delta": 0.1}
"""Requested relative widths for bins, where the ends of different covariances are far apart."""
CLOSE = 4.0
"""Bins get the requested width of the method if their bracket is at most this many rough widths wide."""


class MatrixCertified(Method[CorrelatedNoise]):
    """Enclose a matrix mechanism: a Gaussian mechanism, a Poisson run, or correlated bins.

    With cyclic Poisson sampling and at most as many bands as steps in an epoch, the outputs of a group are
    those of a Poisson run of one step in each epoch. The likelihood ratio of bins grows in convex order with
    every covariance, so that tractable covariances below and above give both ends.
    """

    name = "matrix.certified"
    problems = (MatrixEpsilon, MatrixDelta)
    direction = Direction.ENCLOSURE
    reference = (
        f"{DENISOV} (adaptive gradients); {CHOQUETTE_BANDED} (cyclic Poisson sampling); "
        f"{CHOQUETTE_AMPLIFIED} (dominating pair of bins); "
        "Kahane (1986), Une inegalite du type de Slepian et Gordon (covariances); docs/matrix.md"
    )
    shares = ("strategy", "sigma", "steps", "epochs")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: CorrelatedNoise) -> str | None:
        matrix, steps, epochs = problem.matrix, problem.steps, problem.epochs
        if (reason := matrix.reason(steps, epochs)) is not None:
            return reason
        if problem.sampling == OF_GROUPS and matrix.columns(steps, epochs) is None:
            return "Expected the strategy matrix for cyclic-poisson: the Gram matrix has no single columns."
        if problem.sampling == "balls-in-bins":
            if RELATIONS[problem.adjacency] == "replace-one":
                return "No theorem about a replaced example in correlated bins is implemented; use zero-out."
            return matrix.gram_reason(steps, epochs)
        return None

    def cost(self, problem: CorrelatedNoise) -> Cost:
        if self.applies(problem) is not None or problem.sampling == "none":
            return Cost(seconds=0.05, bytes=1e8)
        question = question_of(problem)
        if problem.sampling == OF_GROUPS:
            return estimated(_groups(problem), question, requested(question.asks, self.tolerance))
        levels = 2.0 + problem.steps.bit_length()
        looks = 6.0 if question.asks == "delta" else 2.0
        products = 2e-9 * float(problem.steps) ** 2 * problem.epochs
        chain = 0.02 * min(problem.steps, MOST_BLOCKS)
        seconds = 0.3 + 0.05 * looks * levels + products + chain
        return Cost(seconds=seconds, bytes=4e8 + 64.0 * problem.steps**2)

    def answer(self, problem: CorrelatedNoise, seed: int) -> Answer:
        question, mu = question_of(problem), _unamplified(problem)
        if problem.sampling == "none":
            (lower, _), (_, upper) = (closed_form(question, mu * (1.0 + side)) for side in (-SUMMED, SUMMED))
            return Answer.enclosure(lower, upper, detail="closed form")
        if problem.sampling == OF_GROUPS:
            tolerance = requested(question.asks, self.tolerance)
            lower, upper, detail = enclosed_run(_groups(problem), question, tolerance, mu * (1.0 + SUMMED))
            return Answer.enclosure(lower, upper, detail=detail)
        return self._in_bins(problem, question, mu * (1.0 + SUMMED))

    def _in_bins(self, problem: CorrelatedNoise, question: Question, mu: float) -> Answer:
        """Return the enclosure of balls-in-bins sampling: the worse of both directions."""
        gram = problem.matrix.gram(problem.steps, problem.epochs) / problem.sigma**2
        bounds, rough = bins(gram), ROUGH[question.asks]
        ends, details = list[Ends](), list[str]()
        for direction in DIRECTIONS[problem.adjacency]:
            one = replace(question, adjacency=direction)
            lower, upper, detail = enclosed_run(bounds, one, rough, mu)
            if upper <= lower * (1.0 + CLOSE * rough):
                fine = requested(question.asks, self.tolerance)
                lower, upper, detail = enclosed_run(bounds, one, fine, mu)
            elif direction == "remove":
                found = along_chain(gram, one, lower, upper)
                upper, detail = (found, "upper end: a chain") if found < upper else (upper, detail)
            ends.append((lower, upper))
            details.append(f"{direction}: {detail}")
        lower, upper = (max(each) for each in zip(*ends, strict=True))
        return Answer.enclosure(lower, upper, detail="; ".join(details))


def _unamplified(problem: CorrelatedNoise) -> float:
    """Return the distance of the means if the steps of the example are public, before outward rounding."""
    distance = 2.0 if RELATIONS[problem.adjacency] == "replace-one" else 1.0
    return distance * problem.matrix.sensitivity(problem.steps, problem.epochs) / problem.sigma


def _groups(problem: CorrelatedNoise) -> Bounds:
    """Return the bounds of cyclic Poisson sampling: for disjoint columns, those of Poisson runs.

    The run above all groups has in each place the longest column of any group. Columns with common rows have
    covariances of at least 0, so that the Poisson run is a lower end, for one gradient set to zero.
    """
    matrix, rate = problem.matrix, problem.sampling_probability
    groups = matrix.columns(problem.steps, problem.epochs)
    assert groups is not None
    disjoint = matrix.disjoint(problem.steps)
    relation = RELATIONS[problem.adjacency] if disjoint else "zero-out"

    def run(norms: tuple[float, ...], side: float) -> Ratio:
        distances = (norm * (1.0 + side) / problem.sigma for norm in norms if norm > 0.0)
        return product(tuple(poisson(relation, s, rate).below[0] for s in distances))

    longest = tuple(map(max, zip(*groups, strict=True)))
    if disjoint and set(longest) == {matrix.norm}:
        return Bounds.exact(run(longest, 0.0))
    below = tuple(run(group, -SUMMED) for group in groups[:MOST_GROUPS] if group[0] > 0.0)
    return Bounds(above=(Above(run(longest, SUMMED)),) if disjoint else (), below=below)
