"""How often aggregation reveals a label for certain: a closed form for every prior."""

import math
from dataclasses import dataclass

from privcore.answer import Answer
from privcore.labels.problems import LabelRatioInfinite
from privcore.method import Cost, Direction, Method
from privcore.papers import BUSA_FEKETE


@dataclass(frozen=True, kw_only=True)
class LabelsInfinite(Method[LabelRatioInfinite]):
    r"""The sum of a bag reveals a label for certain with probability $p^k + (1 - p)^k$.

    It does where the released sum is impossible under the other label: where all others that could have
    label 0 have label 1, and so does this one, or the reverse. Examples are independent, so the probability
    is $p (p + w_0)^{k-1} + (1 - p) (1 - p + w_1)^{k-1}$ with the probabilities $w_0, w_1$ of eta = 0 and 1.
    Noise makes every release possible under both labels.
    """

    name = "labels.infinite"
    problems = (LabelRatioInfinite,)
    direction = Direction.ENCLOSURE
    reference = f"{BUSA_FEKETE}, Section 4; the closed form is ours"

    def cost(self, problem: LabelRatioInfinite) -> Cost:
        atoms = problem.law.atoms
        return Cost(seconds=0.01, bytes=1e6 + 100.0 * (0 if atoms is None else atoms[0].size))

    def answer(self, problem: LabelRatioInfinite, seed: int) -> Answer:
        if problem.mechanism != "llp":
            return Answer.enclosure(0.0, 0.0, detail="no output is impossible under a label")
        p = problem.law.mean
        zeros, ones = problem.law.ends
        others = problem.bag_size - 1
        truth = p * min(1.0, p + zeros) ** others + (1.0 - p) * min(1.0, 1.0 - p + ones) ** others
        error = problem.bag_size * (2.0 * problem.law.moment_error + 2.0**-51)  # in the exponent
        return Answer.enclosure(
            truth * math.exp(-error), min(1.0, truth * math.exp(error) + 1e-290), detail="closed form"
        )
