"""Error rates of an attack on canaries, and the epsilons that they refute."""

from collections.abc import Sequence
from typing import Any

from flows.answers.audits.audit import Scored
from privcore import DomainError, Point, evaluate, find, find_problem
from privcore.auditing import area_interval, area_under_curve, best_threshold, first_half, true_positive_rate

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
METHODS = ("auditing.runs", "auditing.nasr")
FEWEST = 2
"""Least number of canaries of each kind, in each half."""


def rates(
    scored: Scored,
    delta: float,
    confidence: float,
    *,
    thresholds: Sequence[float] = (),
    false_positive_rates: Sequence[float] = FALSE_POSITIVE_RATES,
) -> dict[str, Any]:
    """Return error rates with intervals, and the epsilons that they refute, for JSON.

    Each interval and each epsilon holds with the confidence, if the scores are independent, and not all of
    them at once.

    Args:
        scored: Scores of canaries that are in and out.
        delta: Delta at which epsilon is refuted.
        confidence: Confidence of each interval.
        thresholds: Thresholds of the scores of the file, fixed before seeing them, which share the error;
            without any, half of the canaries gives a threshold for the other half.
        false_positive_rates: Rates at which the true positive rate is enclosed.

    Raises:
        DomainError: There are too few canaries of one kind.
    """
    inside, outside = scored.inside, scored.outside
    if min(inside.size, outside.size) < FEWEST:
        raise DomainError(
            f"Expected at least {FEWEST} canaries in and {FEWEST} out, got {inside.size} and {outside.size}."
        )
    area = area_under_curve(inside, outside)
    return {
        "assumption": "the scores of the canaries are independent",
        **_refuted(scored, delta, confidence, thresholds),
        "area_under_curve": {
            "estimate": area,
            "interval": list(area_interval(area, min(inside.size, outside.size), confidence)),
        },
        "true_positive_rate": [
            {
                "false_positive_rate": rate,
                "interval": list(true_positive_rate(inside, outside, rate, confidence)),
            }
            for rate in false_positive_rates
        ],
    }


def _refuted(scored: Scored, delta: float, confidence: float, thresholds: Sequence[float]) -> dict[str, Any]:
    """Return the epsilons that the counts at the thresholds refute."""
    tested, sign = scored, -1.0 if scored.lower_is_member else 1.0
    thresholds = [sign * threshold for threshold in thresholds]
    if not thresholds:
        first = first_half(scored.scores.size)
        chosen, tested = (
            Scored(scores=scored.scores[half], included=scored.included[half]) for half in (first, ~first)
        )
        if min(chosen.inside.size, chosen.outside.size, tested.inside.size, tested.outside.size) < FEWEST:
            raise DomainError("Expected more canaries, or --threshold: half of them give no threshold.")
        thresholds = [best_threshold(chosen.inside, chosen.outside)]
    counts = [
        {
            "runs_with": tested.inside.size,
            "true_positives": int((tested.inside > threshold).sum()),
            "runs_without": tested.outside.size,
            "false_positives": int((tested.outside > threshold).sum()),
        }
        for threshold in thresholds
    ]
    content = refuted_at(counts, delta, confidence)
    for each, threshold in zip(content["thresholds"], thresholds, strict=True):
        each |= {"in_if": "below" if scored.lower_is_member else "above", "threshold": sign * threshold}
    return content


def refuted_at(counts: Sequence[dict[str, int]], delta: float, confidence: float) -> dict[str, Any]:
    """Return the epsilons that counts of several thresholds refute together, for JSON.

    Args:
        counts: Numbers of runs with and without the record, and of true and false positives, of each
            threshold; the thresholds were fixed beforehand, and share the error.
        delta: Delta at which epsilon is refuted.
        confidence: Confidence of all thresholds together.

    Raises:
        DomainError: There is no threshold.
    """
    if not counts:
        raise DomainError("Expected at least one threshold, got none.")
    share = 1.0 - (1.0 - confidence) / len(counts)
    answers: list[dict[str, Any]] = []
    modelled: list[float] = []
    for each in counts:
        problem = find_problem("audit-runs-epsilon").from_fields(
            {**each, "delta": delta, "audit_confidence": share}
        )
        proved, model = (evaluate(Point(problem=problem, method=find(name)())) for name in METHODS)
        if model.ok:
            modelled.append(model.value or 0.0)
        answers.append(
            {
                **each,
                "epsilon": proved.lower,
                "gaussian": (model.value or 0.0) if model.ok else None,
            }
        )
    return {
        "thresholds": answers,
        "refuted_epsilon": max(each["epsilon"] for each in answers),
        "model_based_epsilon": max(modelled, default=None),
    }
