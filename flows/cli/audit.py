"""The command about audits in one run: from scores of canaries, or their counts, to refuted epsilons."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.answers.show import NEIGHBOURS
from flows.cli.options import Json
from flows.printing import as_json, exactly, rounded_down, rounded_up, say, show
from flows.spec.words import checked, number
from privcore import DomainError
from privcore.params import CONFIDENCE, REPETITIONS

if TYPE_CHECKING:
    from flows.answers.audit import Design


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


def audit(  # noqa: PLR0913  the options of a command are its arguments
    *,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Parquet, CSV, JSONL, NPY or NPZ file with one row for each canary."
        ),
    ] = None,
    scores_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the canaries left out; --scores then has the included ones.",
        ),
    ] = None,
    score_column: Annotated[
        str, typer.Option(metavar="NAME", help="Column of scores; a higher score means more likely included.")
    ] = "score",
    included_column: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Column of inclusion bits, such as 1 and 0, yes and no, or in and out."
        ),
    ] = "included",
    lower_is_member: Annotated[
        bool,
        typer.Option("--lower-is-member", help="A lower score means more likely included, as for losses."),
    ] = False,
    guesses: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Number of guesses, fixed before seeing the scores; half in and half out without pairs.",
        ),
    ] = None,
    counts: Annotated[
        tuple[str, str, str] | None,
        typer.Option(
            metavar="M GUESSES CORRECT",
            help="Numbers of canaries, of guesses and of correct guesses, instead of a file.",
        ),
    ] = None,
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="Delta at which epsilon is refuted.")],
    confidence: Annotated[str, typer.Option(metavar="NUMBER", help="Confidence of the refutation.")] = "0.95",
    design: Annotated[
        str | None,
        typer.Option(
            metavar="DESIGN",
            help="How canaries were included: independent (each by its own fair coin), exactly-half (a "
            "random half), pairs (one record of each pair) or candidates (one of k records). Records of a "
            "pair or set are consecutive rows. Needed with --counts, and for a file with exactly half "
            "included.",
        ),
    ] = None,
    alternatives: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Number k of candidate records for each canary."),
    ] = None,
    one_sided: Annotated[
        bool,
        typer.Option(
            "--one-sided", help="Guess only that the highest scores are in, never that a canary is out."
        ),
    ] = False,
    clearest: Annotated[
        bool,
        typer.Option(
            "--clearest",
            help="Guess about the scores farthest from a centre, in above it and out below; stronger than "
            "half and half if the centre is known in advance.",
        ),
    ] = False,
    centre: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Centre of --clearest; default: the median of the scores."),
    ] = None,
    claimed_epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="Claimed epsilon; prints bounds of its p-value.")
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="CLAIM",
            help="Claimed mechanism, such as gaussian(sigma=1), laplace(scale=2), "
            "guarantee(epsilon=1,delta=1e-5), profile(curve=FILE), the phases of a training run, or a "
            "composition with ; between its parts; prints a bound of its p-value.",
        ),
    ] = None,
    rates: Annotated[
        bool,
        typer.Option(
            "--rates",
            help="Also report AUROC, TPR at FPR, and epsilon by error rates, for independent scores.",
        ),
    ] = False,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER",
            help="Threshold for --rates, fixed beforehand; repeatable. Default: one from half of the scores.",
        ),
    ] = None,
    false_positive_rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER", help="False positive rate for --rates; repeatable. Default: 0.001, 0.01, 0.1."
        ),
    ] = None,
    null_check: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Number of audits to repeat with shuffled inclusion bits."),
    ] = None,
    json: Json = False,
) -> None:
    """Compute the epsilon that an audit in one run refutes, for the design by which canaries were included.

    The refuted epsilons hold for every mechanism, with the given confidence. A model-based epsilon holds if
    the mechanism behaves like Gaussian noise; otherwise it can exceed the true epsilon. Ties between scores
    are broken at random, with a hash of the scores as the seed.
    """
    from flows.answers.audit import (
        FALSE_POSITIVE_RATES,
        Counted,
        audited,
        counted,
        design_in,
        design_of,
        read_scores,
    )
    from flows.answers.audit import rates as error_rates

    domain = partial(checked, "audit-tail")
    if (scores is None) == (counts is None):
        raise DomainError("Expected either --scores or --counts.")
    drawn = design_of(design, None if alternatives is None else int(domain("alternatives", alternatives)))
    level, tolerated = float(CONFIDENCE.check(number(confidence))), float(domain("delta", delta))
    epsilon = None if claimed_epsilon is None else float(domain("claimed_epsilon", claimed_epsilon))
    if claim is not None and epsilon is not None:
        raise DomainError("Expected --claim or --claimed-epsilon, got both.")
    middle = None
    if centre is not None:
        word = number(centre)
        if not clearest or isinstance(word, str) or not math.isfinite(word):
            raise DomainError(f"Expected --centre with --clearest only, and a number, got {centre}.")
        middle = float(word)
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
            domain(name, x) for name, x in zip(("canaries", "guesses", "correct"), counts, strict=True)
        )
        found = Counted(canaries=int(m), guesses=int(made), correct=int(right))
    else:
        assert scores is not None
        if guesses is None:
            raise DomainError("Expected --guesses with --scores, a number fixed before seeing the scores.")
        if one_sided and clearest:
            raise DomainError("Expected --one-sided or --clearest, got both.")
        scored = read_scores(
            scores.expanduser(),
            score_column,
            included_column,
            out_file=None if scores_out is None else scores_out.expanduser(),
            lower_is_member=lower_is_member,
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
            shuffles=0 if null_check is None else int(REPETITIONS.check(number(null_check))),
        )
    content = audited(found, tolerated, level, design=drawn, claimed_epsilon=epsilon, claim=claim)
    if rates and scored is not None:
        content["rates"] = error_rates(
            scored,
            tolerated,
            level,
            thresholds=[_finite("threshold", text) for text in threshold or []],
            false_positive_rates=[_rate(text) for text in false_positive_rate or []] or FALSE_POSITIVE_RATES,
        )
    say(as_json(content)) if json else show_audit(content)


def _design_of_counts(drawn: "Design | None", *, guessing: bool, reading: bool) -> "Design":
    """Return the design of counts, or raise `DomainError` if there is none, or an option for files."""
    from flows.answers.audit import unstated

    if guessing:
        raise DomainError("Expected --guesses, --one-sided, --clearest, --null-check with --scores only.")
    if reading:
        raise DomainError("Expected --scores-out, --lower-is-member and --rates with --scores only.")
    if drawn is None:
        raise unstated()
    return drawn


def _finite(name: str, text: str) -> float:
    """Return a finite number."""
    value = number(text)
    if isinstance(value, str) or not math.isfinite(value):
        raise DomainError(f"Expected a number for --{name}, got {text[:60]}.")
    return float(value)


def _rate(text: str) -> float:
    """Return a rate between 0 and 1."""
    value = _finite("false-positive-rate", text)
    if not 0.0 < value < 1.0:
        raise DomainError(f"Expected --false-positive-rate in (0, 1), got {text[:60]}.")
    return value
