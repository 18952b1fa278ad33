"""One audit in one run: from scores, counts or error rates to refuted epsilons, for a design of canaries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore import Bracket, DomainError, Point, Problem, evaluate, find, find_problem, intersect
from privcore.auditing import (
    AuditEpsilon,
    check_half_included,
    check_included,
    check_one_included,
    correct_if_shuffled,
    guess,
    guess_candidates,
    guess_clearest,
)
from privcore.distributions.columns import read_columns, read_integers

Array = NDArray[np.float64]

WORDS = {
    **dict.fromkeys(("in", "member", "yes", "y", "true", "t", "1", "+1"), 1.0),
    **dict.fromkeys(("out", "non-member", "nonmember", "no", "n", "false", "f", "0"), 0.0),
    "-1": -1.0,
}
"""Words of a column of inclusion bits, in lower case."""

_EXACT = 2.0**53
"""Doubles hold all integers up to here."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores of all randomised canaries and their inclusion bits.

    Attributes:
        scores: Scores, higher for canaries more likely to be in; possibly infinite.
        included: 1 for the included canaries, 0 for the others.
        ranks: Ranks of the scores, if they are integers that are too large for doubles.
        lower_is_member: Whether the scores are those of the file with the other sign.
    """

    scores: Array
    included: Array
    ranks: Array | None = None
    lower_is_member: bool = False

    @property
    def order(self) -> Array:
        """Numbers in the order of the scores."""
        return self.scores if self.ranks is None else self.ranks

    @property
    def inside(self) -> Array:
        """Scores of the included canaries."""
        return np.asarray(self.scores[self.included == 1.0])

    @property
    def outside(self) -> Array:
        """Scores of the canaries that were left out."""
        return np.asarray(self.scores[self.included == 0.0])


def read_scores(
    file: str | Path,
    score_column: str,
    included_column: str,
    *,
    out: str | Path | None = None,
    lower_is_member: bool = False,
) -> Scored:
    """Return the scores of canaries.

    Args:
        file: File with scores and inclusion bits, or only with the scores of included canaries.
        score_column: Name of the column of scores, in each file.
        included_column: Name of the column of inclusion bits, which neither of two files may have.
        out: File with the scores of the canaries that were left out.
        lower_is_member: Whether a lower score, such as a loss, means more likely included.

    Raises:
        DomainError: A file cannot be read, or its columns are not valid.
    """
    file, out_file = Path(file).expanduser(), None if out is None else Path(out).expanduser()
    if out_file is None:
        if score_column == included_column:
            raise DomainError(f"Expected two columns, got {score_column} for scores and inclusion bits.")
        scores, bits = read_columns(
            file, [score_column, included_column], "numbers", {included_column: WORDS}
        )
        included = _included(file, included_column, bits)
    else:
        both = [
            _read_alike(each, score_column, included_column, state)
            for each, state in ((file, "included"), (out_file, "left out"))
        ]
        scores, included = np.concatenate(both), np.repeat([1.0, 0.0], [each.size for each in both])
    sign, ranks = -1.0 if lower_is_member else 1.0, None
    if np.abs(scores[np.isfinite(scores)]).max(initial=0.0) >= _EXACT:
        ranks = sign * _ranks([each for each in (file, out_file) if each is not None], score_column)
    return Scored(scores=sign * scores, included=included, ranks=ranks, lower_is_member=lower_is_member)


def scores_in(
    scores: Any, score_column: str, included_column: str, *, out: Any = None, lower_is_member: bool = False
) -> Scored:
    """Return the scores of canaries from memory.

    Args:
        scores: A mapping or a frame with both columns; with `out`, an array of scores of included canaries.
        score_column: As in `read_scores`.
        included_column: As in `read_scores`.
        out: Array of the scores of the canaries that were left out.
        lower_is_member: As in `read_scores`.

    Raises:
        DomainError: A column is missing, or has values that are not numbers.
    """
    try:
        if out is None:
            each, bits = (np.asarray(scores[name], dtype=float) for name in (score_column, included_column))
            included = _included("the scores", included_column, bits)
        else:
            both = [np.asarray(one, dtype=float).ravel() for one in (scores, out)]
            each, included = np.concatenate(both), np.repeat([1.0, 0.0], [one.size for one in both])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DomainError(
            f"Expected a table with scores in the column {score_column} and inclusion bits in "
            f"{included_column}, or two arrays of scores, --scores and --scores-out: {str(error)[:80]}."
        ) from None
    if each.shape != included.shape or each.ndim != 1 or np.isnan(each).any():
        raise DomainError(f"Expected one score for each canary and no NaN, got {each.size} scores.")
    return Scored(
        scores=-each if lower_is_member else each, included=included, lower_is_member=lower_is_member
    )


def _ranks(files: Sequence[Path], column: str) -> Array:
    """Return the rank of each number, from 0 on, with all digits of integers; ties have equal ranks."""
    numbers = np.array([number for file in files for number in read_integers(file, column)], dtype=object)
    return np.unique(numbers, return_inverse=True)[1].astype(np.float64)


def _included(file: object, column: str, bits: Array) -> Array:
    """Return inclusion bits 1 and 0, given these or 1 and -1."""
    out = -1.0 if (bits == -1.0).any() else 0.0
    wrong = (bits != 1.0) & (bits != out)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DomainError(
            f"Expected inclusion bits 1 and {out:g} in the column {column} of {file}, got {bits[row]:g} in "
            f"row {row + 1}."
        )
    return np.asarray((bits == 1.0).astype(np.float64))


def _read_alike(file: Path, score_column: str, included_column: str, state: str) -> Array:
    """Return the scores of canaries that are all included, or all left out."""
    reason = (
        f"Expected no column {included_column} in {file}, since --scores-out means that all of its rows are "
        f"{state}: leave out --scores-out, so that the column decides, or remove the column."
    )
    refused = {} if score_column == included_column else {included_column: reason}
    return read_columns(file, [score_column], "numbers", refused=refused)[0]


_CHOICES = (
    "independent (each canary was in or out by its own fair coin), exactly-half (a uniformly random half of "
    "the canaries was in), pairs (one record of each pair was in, by a fair coin) or candidates (one of k "
    "records was in, with --alternatives k)"
)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A design of an audit.

    Attributes:
        word: Its name on the command line.
        alternatives: Number k of alternatives for each canary.
        stated: Whether a user has stated it.
    """

    word: str
    alternatives: int = 2
    stated: bool = True

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a problem about an audit of this design; candidate records are drawn independently."""
        design = "independent" if self.word == "candidates" else self.word
        return {"alternatives": self.alternatives, "design": design}

    @property
    def candidates(self) -> int:
        """Number of records of each set, one of them in; 0 if canaries are in or out."""
        return self.alternatives if self.word in ("pairs", "candidates") else 0

    @property
    def text(self) -> str:
        """The assumption about the inclusion of canaries, in words."""
        return {
            "independent": "each canary was in or out by its own fair coin",
            "exactly-half": "a uniformly random half of the canaries was in",
            "pairs": "one record of each pair was in, by a fair coin",
            "candidates": f"one of {self.alternatives} records was in for each canary, all equally likely",
        }[self.word]

    def check(self, included: Array) -> None:
        """Raise `DomainError` if inclusion bits contradict the design."""
        checks: dict[str, Callable[[Array], None]] = {
            "independent": check_included,
            "exactly-half": check_half_included,
        }
        checks.get(self.word, partial(check_one_included, candidates=self.alternatives))(included)


INDEPENDENT = Design(word="independent", stated=False)


def design_of(word: str | None, alternatives: int | None) -> Design | None:
    """Return the design that options state, or None if they state none.

    Args:
        word: Name of the design, or None.
        alternatives: Number of alternatives, or None. More than two are candidate records.

    Raises:
        DomainError: The options name no design, or contradict one another.
    """
    if word is None:
        if alternatives is None or alternatives == 2:
            return None
        return Design(word="candidates", alternatives=alternatives)
    if word not in ("independent", "exactly-half", "pairs", "candidates"):
        raise DomainError(f"Expected --design {_CHOICES}, got {word[:60]}.")
    if word == "candidates":
        if alternatives is None:
            raise DomainError("Expected --alternatives with --design candidates, the number of records.")
        return Design(word="pairs" if alternatives == 2 else word, alternatives=alternatives)
    if alternatives not in (None, 2):
        raise DomainError(f"Expected --design candidates with --alternatives {alternatives}, got {word}.")
    return Design(word=word)


def design_in(included: Array) -> Design:
    """Return the design of independent coins for a file, unless its inclusion bits look like another one.

    Raises:
        DomainError: Exactly half of the canaries are included, which every design may explain.
    """
    m, inside = included.size, int(included.sum())
    if 2 * inside != m:
        return INDEPENDENT
    pairs = ", one of each two consecutive rows" if (included[::2] + included[1::2] == 1.0).all() else ""
    raise DomainError(
        f"Expected --design, since exactly half of the {m} canaries are included{pairs}: {_CHOICES}."
    )


def unstated() -> DomainError:
    """Return the error about counts without a design."""
    return DomainError(f"Expected --design with --counts: {_CHOICES}.")


WITHOUT_MODEL = ("auditing.tightest", "auditing.combined", "auditing.approximate", "auditing.steinke")
MODEL_BASED = ("auditing.tightestmu", "auditing.gaussian")
MU = "auditing.mu"
RARE = 1e-6
"""Probability of this few correct guesses, without information, below which a hint is printed."""
TAILS = ("auditing.exact", "auditing.recursion", "auditing.revealed")
CLAIMED = ("auditing.claimed",)


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
    claim: str | None = None,
) -> dict[str, Any]:
    """Return all conclusions from the counts, for JSON.

    Args:
        counts: The counts.
        delta: Delta at which epsilon is refuted, in [0, 1); at 0 no epsilon depends on the Gaussian family.
        confidence: Confidence of the refutation, in [1/2, 1).
        design: How the canaries were included.
        claimed_epsilon: Claimed epsilon whose p-value is bounded.
        claim: Claim whose p-value is bounded, as `training.claims` writes it, such as gaussian(sigma=1).

    Returns:
        The design, and the neighbouring relation of the refuted guarantee (a canary is added or removed, or
        replaced by another alternative); epsilons of the audits without a model, each refuted at the
        confidence; the model-based epsilon; the bounds of the p-value of a claim; hints; and the number of
        audits with shuffled bits that refute.

    Raises:
        DomainError: The counts contradict one another, or the claim is about another neighbouring relation.
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
        tail = find_problem("audit-tail").from_fields(
            {**fields, "claimed_epsilon": claimed_epsilon, "delta": delta}
        )
        content["claim"] = {"epsilon": claimed_epsilon, **_refutation(tail, TAILS, confidence)}
    if claim is not None:
        kind = find_problem("audit-claim-tail")
        parts = replace(kind.parameters["phases"], name="claim").check(claim)
        tail = kind.from_fields({**fields, "phases": parts})
        content["claim"] = {"mechanism": claim, **_refutation(tail, CLAIMED, confidence)}
    content["hints"] = _hints(question, confidence)
    if counts.shuffled:
        least = _least_refuting(question)
        content["null_check"] = {
            "audits": len(counts.shuffled),
            "refuted": sum(c >= least for c in counts.shuffled),
            "nominal": (1.0 - confidence) * len(counts.shuffled),
        }
    return content


def _refutation(claim: Problem, names: Sequence[str], confidence: float) -> dict[str, Any]:
    """Return the bounds of the p-value of a claim, and whether they refute it."""
    bounds = _answers(claim, names, "upper")
    if not bounds:
        raise DomainError(find(names[0])().applies(claim) or "No method bounds the p-value of this claim.")
    p_value = intersect(Bracket(upper=bound) for bound in bounds.values())
    return {"p_value": bounds, "refuted": p_value.upper <= 1.0 - confidence}


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
