"""Exact advantage on one member of a bag with known etas, and probabilities of its released values."""

from dataclasses import dataclass
from typing import get_args

from privcore.answer import Answer
from privcore.distributions.prior_finite import FinitePrior
from privcore.labels.bag_problems import MemberAdvantage, ReleaseProbability
from privcore.labels.poisson_binomial import FLOOR, leave_one_out, pmf, relative_error
from privcore.labels.response import outputs, response_advantage
from privcore.labels.rows import advantage, likelihoods
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE

Answered = MemberAdvantage | ReleaseProbability

_FEW = 2.0**-49
"""Relative error of a few products and sums."""


@dataclass(frozen=True, kw_only=True)
class LabelsMember(Method[Answered]):
    r"""Exact likelihoods from the distribution of the sum of all labels except that of the member.

    The advantage is the overturned mass $\sum_z (\eta g_1 - (1 - \eta) g_0)_+$ of the member, or its mirror
    image if $\eta > 1/2$; the mean over the members is that of `labels.bag`. A release has the probability
    $\eta g_1(z) + (1 - \eta) g_0(z)$, the same for each member.
    """

    name = "labels.member"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Lemma A.1"
    version = 2
    shares = ("bag",)

    def cost(self, problem: Answered) -> Cost:
        k = problem.bag_size
        return Cost(seconds=0.01 + 2e-7 * k * k, bytes=1e6 + 100.0 * k * k)

    def answer(self, problem: Answered, seed: int) -> Answer:
        if isinstance(problem, MemberAdvantage):
            ends, detail = _advantage(problem), f"member {problem.member}"
        else:
            ends, detail = _probability(problem), f"value {problem.released:g}"
        lower, upper = max(0.0, ends[0]), min(problem.largest, ends[1])
        return Answer.enclosure(lower, upper, detail=f"{detail}, bag of {problem.bag_size}")


def _advantage(problem: MemberAdvantage) -> tuple[float, float]:
    """Return lower and upper bounds of the advantage on the member."""
    etas, j = problem.etas, problem.member - 1
    prior = FinitePrior.point(float(etas[j]))
    if problem.mechanism == "none" or etas[j] in (0.0, 1.0):
        return 0.0, 0.0
    if problem.mechanism == "rr":
        return response_advantage(prior, problem.label_epsilon)
    others = leave_one_out(etas)[j : j + 1]
    low, high = advantage(others, problem.mechanism, problem.label_epsilon, prior)
    return float(low[0]), float(high[0])


def _probability(problem: ReleaseProbability) -> tuple[float, float]:
    """Return lower and upper bounds of the probability of the released value."""
    etas, z = problem.etas, int(problem.released)
    eta = float(etas[0])
    if problem.mechanism == "rr":
        one, zero = outputs(problem.label_epsilon)
        return _around(eta * float(one[1 - z]) + (1.0 - eta) * float(zero[1 - z]), _FEW)
    if problem.mechanism == "llp":
        if not int((etas == 1.0).sum()) <= z <= int((etas > 0.0).sum()):
            return 0.0, 0.0  # some labels are certain
        return _around(float(pmf(etas)[z]), relative_error(etas.size))
    ones, zeros, error = likelihoods(leave_one_out(etas)[:1], problem.label_epsilon)
    return _around(eta * float(ones[0, z]) + (1.0 - eta) * float(zeros[0, z]), error + _FEW)


def _around(value: float, error: float) -> tuple[float, float]:
    """Return bounds of a value with a relative error, above the floor of the tree of products."""
    return value * (1.0 - error) * (1.0 - _FEW) - FLOOR, value * (1.0 + error) * (1.0 + _FEW) + FLOOR
