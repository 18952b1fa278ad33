"""An audit from its words: scores in files or counts, the design, and the numbers to refute."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from flows.answers.audits.audit import (
    Counted,
    Design,
    audited,
    counted,
    design_in,
    design_of,
    read_scores,
    scores_in,
    unstated,
)
from flows.answers.audits.audit_rates import FALSE_POSITIVE_RATES, refuted_at
from flows.answers.audits.audit_rates import rates as error_rates
from flows.answers.show import NEIGHBOURS
from flows.printing import exactly, rounded_down, rounded_up, say, show
from flows.spec.words import checked, value_of
from privcore import DomainError
from privcore.distributions.columns import read_columns
from privcore.params import CONFIDENCE, REPETITIONS

Number = float | int | str


def counted_in(counts: str | Sequence[object]) -> Sequence[object]:
    """Return the numbers of canaries, guesses and correct guesses, in any usual form.

    Raises:
        DomainError: There are not three numbers, or they have other names.

    Example:
        >>> counted_in("2000, 200, 180"), counted_in("canaries=2000 guesses=200 correct=180")
        (['2000', '200', '180'], ['2000', '200', '180'])
    """
    names = ("canaries", "guesses", "correct")
    words = re.split(r"[\s,;/|]+|\bof\b", counts.strip("()[] ")) if isinstance(counts, str) else list(counts)
    words = [word for word in words if word != ""]
    named = [str(word).replace(":", "=").partition("=") for word in words]
    if all(equals for _, equals, _ in named) and sorted(name for name, _, _ in named) == sorted(names):
        words = [next(text for each, _, text in named if each == name) for name in names]
    if len(words) != 3:
        raise DomainError(
            f"Expected three numbers for --counts: canaries, guesses and correct guesses, got {len(words)}."
        )
    return words


def curve_of(
    roc: Any, runs: str | Sequence[object] | None, delta: float, confidence: float
) -> dict[str, Any]:
    """Return the epsilons that the points of a ROC curve refute together, for JSON.

    Args:
        roc: File with a row for each threshold, all fixed beforehand: false positive rates in the column
            `false_positive_rate` or `fpr`, true positive rates in `true_positive_rate` or `tpr`; or such a
            table in memory. Counts are rounded to the safe side.
        runs: Numbers of training runs with and without the record.
        delta: Delta at which epsilon is refuted.
        confidence: Confidence of all points together.

    Raises:
        DomainError: The table or the numbers of runs are not valid.
    """
    words = re.split(r"[\s,;/]+", runs.strip()) if isinstance(runs, str) else list(runs or ())
    sizes = [value_of(word, "runs") for word in words]
    if len(sizes) != 2 or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise DomainError("Expected --runs with --roc: the numbers of runs with and without the record.")
    columns = _rates_in(roc)
    if not all(((each >= 0.0) & (each <= 1.0)).all() for each in columns):
        raise DomainError("Expected rates between 0 and 1 in the table of --roc.")
    counts = [
        {
            "runs_with": sizes[0],
            "true_positives": math.floor(true * sizes[0] + 1e-9),
            "runs_without": sizes[1],
            "false_positives": math.ceil(false * sizes[1] - 1e-9),
        }
        for false, true in zip(*(each.tolist() for each in columns), strict=True)
    ]
    told = {"assumption": "the runs are independent", "delta": delta, "confidence": confidence}
    return told | refuted_at(counts, delta, confidence)


NAMES_OF_RATES = (("fpr", "tpr"), ("false_positive_rate", "true_positive_rate"))


def _rates_in(roc: Any) -> list[Any]:
    """Return false and true positive rates."""
    refused = []
    for names in NAMES_OF_RATES:
        try:
            if isinstance(roc, str | Path):
                return read_columns(Path(roc).expanduser(), list(names), "rates")
            return [np.asarray(roc[name], dtype=float) for name in names]
        except (DomainError, KeyError, IndexError, TypeError, ValueError) as error:
            refused.append(error)
    raise DomainError(f"Expected the columns fpr and tpr in the table of --roc: {refused[0]}")


def show_curve(content: Mapping[str, Any]) -> None:
    """Print the epsilons that the points of a ROC curve refute."""
    delta, level = exactly(content["delta"]), exactly(content["confidence"])
    say(f"epsilon >= {rounded_down(content['refuted_epsilon'])} at delta = {delta} with confidence {level}")
    say(f"if {content['assumption']}, and all {len(content['thresholds'])} thresholds were fixed beforehand")
    say("neighbouring data sets: those of the runs with and without the record (add-remove)")
    rows = [
        [
            f"{each['true_positives']} of {each['runs_with']}",
            f"{each['false_positives']} of {each['runs_without']}",
            rounded_down(each["epsilon"]),
        ]
        for each in content["thresholds"]
    ]
    show(["true positives", "false positives", "epsilon"], rows)


OF_A_CURVE = {"roc", "runs", "delta", "confidence", "score_column", "included_column"}
"""Words of an audit from a ROC curve."""
UNSTATED = (None, False, ())
LOSSES = re.compile(r"loss|nll|perplexity|error|cross.?entropy", re.IGNORECASE)
"""Names of columns whose numbers are usually lower for members."""


def audit_of(  # noqa: PLR0913  the options of a command are its arguments
    *,
    scores: Any,
    scores_out: Any,
    roc: Any = None,
    runs: str | Sequence[object] | None = None,
    score_column: str,
    included_column: str,
    lower_is_member: bool,
    guesses: Number | None,
    counts: str | Sequence[object] | None,
    delta: Number,
    confidence: Number,
    design: str | None,
    alternatives: Number | None,
    one_sided: bool,
    clearest: bool,
    centre: Number | None,
    claimed_epsilon: Number | None,
    claim: str | None,
    rates: bool,
    threshold: Sequence[Number] | None,
    false_positive_rate: Sequence[Number] | None,
    null_check: Number | None,
) -> dict[str, Any]:
    """Return the conclusions of an audit, for JSON; the arguments are the options of `privsweep audit`.

    Raises:
        DomainError: Options contradict one another, or a file is not valid.
    """
    words = dict(locals())
    domain = partial(checked, "audit-tail")
    given = [each for each in (scores, counts, roc) if each is not None]
    if len(given) != 1 or (runs is not None and roc is None):
        raise DomainError("Expected either --scores, --counts, or --roc with --runs.")
    drawn = design_of(design, None if alternatives is None else int(domain("alternatives", alternatives)))
    level, tolerated = (
        float(CONFIDENCE.check(value_of(confidence, "confidence"))),
        float(domain("delta", delta)),
    )
    if roc is not None:
        told = [name for name, value in words.items() if name not in OF_A_CURVE and value not in UNSTATED]
        if told:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in told)
            raise DomainError(f"Expected --roc without {options}: these are for guesses.")
        return curve_of(roc, runs, tolerated, level)
    epsilon = None if claimed_epsilon is None else float(domain("claimed_epsilon", claimed_epsilon))
    if claim is not None and epsilon is not None:
        raise DomainError("Expected --claim or --claimed-epsilon, got both.")
    middle = None if centre is None else _centre(centre, clearest)
    if (threshold or false_positive_rate) and not rates:
        raise DomainError("Expected --threshold and --false-positive-rate with --rates only.")
    scored = None
    if counts is not None:
        drawn = _design_of_counts(
            drawn,
            guessing=guesses is not None or one_sided or clearest or null_check is not None,
            reading=scores_out is not None or lower_is_member or rates,
        )
        m, made, right = (
            domain(name, x)
            for name, x in zip(("canaries", "guesses", "correct"), counted_in(counts), strict=True)
        )
        found = Counted(canaries=int(m), guesses=int(made), correct=int(right))
    else:
        assert scores is not None
        if guesses is None:
            raise DomainError("Expected --guesses with --scores, a number fixed before seeing the scores.")
        if one_sided and clearest:
            raise DomainError("Expected --one-sided or --clearest, got both.")
        reading = read_scores if isinstance(scores, str | Path) else scores_in
        scored = reading(
            scores, score_column, included_column, out=scores_out, lower_is_member=lower_is_member
        )
        drawn = drawn or design_in(scored.included)
        if drawn.candidates and (one_sided or clearest or rates or scores_out is not None):
            raise DomainError(
                f"Expected --one-sided, --clearest, --rates and --scores-out without --design {drawn.word}, "
                "whose guess is the record with the highest score of each set."
            )
        found = counted(
            scored,
            int(domain("guesses", guesses)),
            design=drawn,
            one_sided=one_sided,
            clearest=clearest,
            centre=middle,
            shuffles=0 if null_check is None else int(REPETITIONS.check(value_of(null_check, "null_check"))),
        )
    content = audited(found, tolerated, level, design=drawn, claimed_epsilon=epsilon, claim=claim)
    if rates and scored is not None:
        content["rates"] = error_rates(
            scored,
            tolerated,
            level,
            thresholds=[_finite("threshold", text) for text in threshold or ()],
            false_positive_rates=[_rate(text) for text in false_positive_rate or ()] or FALSE_POSITIVE_RATES,
        )
    if scores is not None and not lower_is_member and LOSSES.search(score_column):
        content["hints"].append(
            f"hint: a higher {score_column} counts as more likely included; if members have lower ones, "
            "state --lower-is-member, before seeing this count."
        )
    return content


def _centre(centre: object, clearest: bool) -> float:
    """Return the centre of the clearest scores."""
    word = value_of(centre, "centre")
    if not clearest or isinstance(word, str) or not math.isfinite(word):
        raise DomainError(f"Expected --centre with --clearest only, and a number, got {centre}.")
    return float(word)


def _design_of_counts(drawn: Design | None, *, guessing: bool, reading: bool) -> Design:
    """Return the design of counts, or raise `DomainError` if there is none, or an option for files."""
    if guessing:
        raise DomainError("Expected --guesses, --one-sided, --clearest, --null-check with --scores only.")
    if reading:
        raise DomainError("Expected --scores-out, --lower-is-member and --rates with --scores only.")
    if drawn is None:
        raise unstated()
    return drawn


def _finite(name: str, text: object) -> float:
    """Return a finite number."""
    value = value_of(text, name)
    if isinstance(value, str) or not math.isfinite(value):
        raise DomainError(f"Expected a number for --{name}, got {str(text)[:60]}.")
    return float(value)


def _rate(text: object) -> float:
    """Return a rate between 0 and 1."""
    value = _finite("false-positive-rate", text)
    if not 0.0 < value < 1.0:
        raise DomainError(f"Expected --false-positive-rate in (0, 1), got {str(text)[:60]}.")
    return value


def show_audit(content: Mapping[str, Any]) -> None:
    """Print an audit as text."""
    level, delta = exactly(content["confidence"]), exactly(content["delta"])
    say(f"{content['correct']} of {content['guesses']} guesses about {content['canaries']} canaries correct")
    rows = [
        [name, rounded_down(epsilon), "for every mechanism"]
        for name, epsilon in content["refuted_epsilon"].items()
    ]
    rows += [
        [name, rounded_down(epsilon), "model-based: only if the mechanism behaves like Gaussian noise"]
        for name, epsilon in content["model_based_epsilon"].items()
    ]
    kind, note = (
        ("design", "") if content["design_stated"] else ("assumed design", "; --design states another")
    )
    say(f"{kind}: {content['assumed_design']} ({content['design']}{note})")
    say(f"neighbouring data sets: {NEIGHBOURS[content['neighbours']]}")
    show(["audit", "epsilon", "holds"], rows, title=f"refuted at delta = {delta} with confidence {level}:")
    for name, mu in content["refuted_mu"].items():
        say(f"refuted mu of Gaussian differential privacy: {rounded_down(mu)} by {name}")
    if "claim" in content:
        claim = content["claim"]
        bounds = ", ".join(f"{rounded_up(p)} by {name}" for name, p in claim["p_value"].items())
        verdict = "refuted" if claim["refuted"] else "not refuted, which does not confirm it"
        claimed = claim.get("mechanism") or f"epsilon = {exactly(claim['epsilon'])}"
        say(f"claim {claimed}: {verdict}; p-value at most {bounds}")
        if "mechanism" in claim:
            say(
                f"p-value: largest probability of {content['correct']} or more correct guesses if the claim "
                "is true"
            )
    for hint in content["hints"]:
        say(hint)
    if "null_check" in content:
        check = content["null_check"]
        say(
            f"null check: {check['refuted']} of {check['audits']} audits with shuffled inclusion bits refute "
            f"some epsilon > 0; expected are at most about {check['nominal']:.4g}"
        )
    if "rates" in content:
        _show_rates(content["rates"], level)


def _show_rates(content: Mapping[str, Any], level: str) -> None:
    """Print the error rates of the attack as text."""
    say(f"if {content['assumption']}, each with confidence {level}:")
    for each in content["thresholds"]:
        say(
            f"scores {each['in_if']} {each['threshold']:.6g}: "
            f"{each['true_positives']} of {each['runs_with']} in, "
            f"{each['false_positives']} of {each['runs_without']} out; "
            f"epsilon >= {rounded_down(each['epsilon'])}{_modelled(each['gaussian'], each['epsilon'])}"
        )
    area = content["area_under_curve"]
    rows = [
        [
            "AUROC",
            f"{area['estimate']:.6g}",
            rounded_down(area["interval"][0]),
            rounded_up(area["interval"][1]),
        ]
    ]
    rows += [
        [
            f"TPR at FPR {exactly(each['false_positive_rate'])}",
            "",
            rounded_down(each["interval"][0]),
            rounded_up(each["interval"][1]),
        ]
        for each in content["true_positive_rate"]
    ]
    show(["rate", "estimate", "at least", "at most"], rows)


def _modelled(epsilon: float | None, proved: float) -> str:
    """Return the epsilon of the Gaussian family, if it has one (not at delta 0) that exceeds the proved one.

    The joint tests with and without the model weigh both rates differently, so the model may refute less.
    """
    if epsilon is None or epsilon <= proved:
        return ""
    return f", {rounded_down(epsilon)} if the mechanism behaves like Gaussian noise"
