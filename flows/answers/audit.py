"""One audit in one run: the epsilons that scores or counts refute, with and without a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import scipy

from flows.answers.audit_design import INDEPENDENT, Design
from flows.answers.audit_scores import Scored
from privcore import Bracket, DomainError, Point, Problem, evaluate, find, find_problem, intersect
from privcore.auditing import AuditEpsilon, correct_if_shuffled, guess, guess_candidates, guess_clearest

WITHOUT_MODEL = ("auditing.tightest", "auditing.combined", "auditing.approximate", "auditing.steinke")
MODEL_BASED = ("auditing.tightestmu", "auditing.gaussian")
MU = "auditing.mu"
RARE = 1e-6
"""Probability of this few correct guesses, without information, below which a hint is printed."""
TAILS = ("auditing.exact", "auditing.recursion", "auditing.revealed")


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The numbers of randomised canaries, of guesses about them, and of correct guesses.

    Attributes:
        canaries: Number m of canaries, or of sets of candidate records.
        guesses: Number c'.
        correct: Number c.
        shuffled: Numbers of correct guesses for shuffled inclusion bits; empty without shuffling.
    """

    canaries: int
    guesses: int
    correct: int
    shuffled: tuple[int, ...] = ()


def counted(
    scored: Scored,
    guesses: int,
    *,
    design: Design = INDEPENDENT,
    one_sided: bool = False,
    clearest: bool = False,
    centre: float | None = None,
    shuffles: int = 0,
) -> Counted:
    """Return the counts of guesses that are made from the scores.

    Args:
        scored: Scores and inclusion bits of every canary that was randomised.
        guesses: Number of guesses, fixed beforehand.
        design: How the canaries were included; with candidate records, each set has consecutive rows.
        one_sided: Whether to guess only that the highest scores are in.
        clearest: Whether to guess about the scores farthest from the centre, instead of half and half.
        centre: Centre for `clearest`, in the units of the file; None means the median of the scores.
        shuffles: Number of times that guesses are also counted with shuffled inclusion bits.

    Raises:
        DomainError: The scores or the inclusion bits are not valid for an audit.
    """
    scores, included = scored.scores, scored.included
    design.check(included)
    candidates = design.candidates
    if candidates:
        made = guess_candidates(scores, guesses, candidates)
    elif clearest:
        sign = -1.0 if scored.lower_is_member else 1.0
        made = guess_clearest(scores, guesses, None if centre is None else sign * centre)
    else:
        made = guess(scored.order, guesses, one_sided=one_sided)
    return Counted(
        canaries=scores.size // max(1, candidates),
        guesses=guesses,
        correct=made.correct(included),
        shuffled=tuple(correct_if_shuffled(scores, included, made, shuffles, candidates).tolist()),
    )


def audited(
    counts: Counted,
    delta: float,
    confidence: float,
    *,
    design: Design = INDEPENDENT,
    claimed_epsilon: float | None = None,
) -> dict[str, Any]:
    """Return all conclusions from the counts, for JSON.

    Args:
        counts: The counts.
        delta: Delta at which epsilon is refuted, in [0, 1); at 0 no epsilon depends on the Gaussian family.
        confidence: Confidence of the refutation, in [1/2, 1).
        design: How the canaries were included.
        claimed_epsilon: Claimed epsilon whose p-value is bounded.

    Returns:
        The design, and the neighbouring relation of the refuted guarantee (a canary is added or removed, or
        replaced by another alternative); epsilons of the audits without a model, each refuted at the
        confidence; the model-based epsilon; the bounds of the p-value of a claim; hints; and the number of
        audits with shuffled bits that refute.

    Raises:
        DomainError: The counts contradict one another.
    """
    fields = {
        "canaries": counts.canaries,
        "guesses": counts.guesses,
        "correct": counts.correct,
        **design.fields,
    }
    question = AuditEpsilon.from_fields({**fields, "delta": delta, "audit_confidence": confidence})
    content: dict[str, Any] = {
        **fields,
        "design": design.word,
        "assumed_design": design.text,
        "design_stated": design.stated,
        "neighbours": question.relation(),
        "delta": delta,
        "confidence": confidence,
        "refuted_epsilon": _answers(question, WITHOUT_MODEL, "lower"),
        "model_based_epsilon": _answers(question, MODEL_BASED, "value"),
        "refuted_mu": _answers(
            find_problem("audit-mu").from_fields({**fields, "audit_confidence": confidence}), (MU,), "lower"
        ),
    }
    if claimed_epsilon is not None:
        claim = find_problem("audit-tail").from_fields(
            {**fields, "claimed_epsilon": claimed_epsilon, "delta": delta}
        )
        bounds = _answers(claim, TAILS, "upper")
        p_value = intersect(Bracket(upper=bound) for bound in bounds.values())
        content["claim"] = {
            "epsilon": claimed_epsilon,
            "p_value": bounds,
            "refuted": p_value.upper <= 1.0 - confidence,
        }
    content["hints"] = _hints(question, confidence)
    if counts.shuffled:
        least = _least_refuting(question)
        content["null_check"] = {
            "audits": len(counts.shuffled),
            "refuted": sum(c >= least for c in counts.shuffled),
            "nominal": (1.0 - confidence) * len(counts.shuffled),
        }
    return content


def _hints(question: AuditEpsilon, confidence: float) -> list[str]:
    """Return a sentence about too few correct guesses that the sign of the scores is probably wrong."""
    fields = question.as_fields()
    guesses, correct, k = (int(fields[name]) for name in ("guesses", "correct", "alternatives"))
    chance = float(scipy.special.bdtr(correct, guesses, 1.0 / k)) / question.share
    if chance >= RARE:
        return []
    error = 1.0 - confidence
    hint = (
        f"hint: without information, {correct} or fewer of {guesses} guesses are correct with probability "
        f"at most {chance:.2g}; the sign of the scores may be wrong (--lower-is-member). To choose the sign "
        f"after seeing this count doubles the error: with the other sign, --confidence "
        f"{1.0 - 0.5 * error:.6g} keeps the error at {error:.4g}, as do new canaries."
    )
    return [hint]


def _answers(problem: Problem, names: Sequence[str], end: str) -> dict[str, float]:
    """Return one end, or the value, of the answers of those methods that apply."""
    answers = {}
    for name in names:
        method = find(name)()
        if method.applies(problem) is not None:
            continue
        answer = evaluate(Point(problem=problem, method=method))
        if not answer.ok:
            raise DomainError(f"No answer from {name}: {answer.detail}")
        answers[name] = getattr(answer, end)
    return answers


def _least_refuting(question: Problem) -> int:
    """Return the least number of correct guesses that refutes some epsilon > 0, or the guesses plus one."""
    fields = question.as_fields()

    def refutes(correct: int, method: str) -> bool:
        other = type(question).from_fields({**fields, "correct": correct})
        return max(_answers(other, [method], "lower").values(), default=0.0) > 0.0

    best, published, *_ = WITHOUT_MODEL
    low, high = 0, int(fields["guesses"]) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle, published) else (middle, high)
    while high > 1 and refutes(high - 1, best):  # a better bound needs a few correct guesses fewer
        high -= 1
    return high
