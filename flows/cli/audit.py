"""The command about audits in one run: from scores of canaries, or their counts, to a refuted epsilon."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json
from flows.printing import as_json, exactly, rounded_down, rounded_up, show
from flows.spec.words import checked, number
from privcore import DomainError
from privcore.params import CONFIDENCE, DELTA, REPETITIONS


def audit(  # noqa: PLR0913  the options of a command are its arguments
    *,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Parquet or CSV file with one row for each canary.")
    ] = None,
    score_column: Annotated[
        str, typer.Option(metavar="NAME", help="Column of scores; a higher score means more likely included.")
    ] = "score",
    included_column: Annotated[
        str, typer.Option(metavar="NAME", help="Column of inclusion bits: true, false, 1 or 0.")
    ] = "included",
    guesses: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Number of guesses, half in and half out, fixed before seeing the scores."
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
    alternatives: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="Number of alternatives for each canary; above 2 only with --counts."
        ),
    ] = "2",
    one_sided: Annotated[
        bool,
        typer.Option(
            "--one-sided", help="Guess only that the highest scores are in, never that a canary is out."
        ),
    ] = False,
    clearest: Annotated[
        bool,
        typer.Option(
            "--clearest", help="Guess about the scores farthest from a centre, in above it and out below."
        ),
    ] = False,
    centre: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Centre of --clearest; default: the median of the scores."),
    ] = None,
    claimed_epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="Claimed epsilon; prints bounds of its p-value.")
    ] = None,
    null_check: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Number of audits to repeat with shuffled inclusion bits."),
    ] = None,
    json: Json = False,
) -> None:
    """Compute the epsilon that an audit in one run refutes, with each canary included by a fair coin.

    The refuted epsilons hold for every mechanism, with the given confidence. A model-based epsilon holds if
    the mechanism behaves like Gaussian noise; otherwise it can exceed the true epsilon. Ties between scores
    are broken at random, with a hash of the scores as the seed.
    """
    from flows.answers.audit import Counted, audited, counted

    domain = partial(checked, "audit-tail")
    if (scores is None) == (counts is None):
        raise DomainError("Expected either --scores or --counts.")
    choices = int(domain("alternatives", alternatives))
    level, tolerated = float(CONFIDENCE.check(number(confidence))), float(DELTA.check(number(delta)))
    claim = None if claimed_epsilon is None else float(domain("claimed_epsilon", claimed_epsilon))
    middle = None
    if centre is not None:
        word = number(centre)
        if not clearest or isinstance(word, str) or not math.isfinite(word):
            raise DomainError(f"Expected --centre with --clearest only, and a number, got {centre}.")
        middle = float(word)
    if counts is not None:
        if guesses is not None or one_sided or clearest or null_check is not None:
            raise DomainError("Expected --guesses, --one-sided, --clearest, --null-check with --scores only.")
        m, made, right = (
            domain(name, x) for name, x in zip(("canaries", "guesses", "correct"), counts, strict=True)
        )
        found = Counted(canaries=int(m), guesses=int(made), correct=int(right))
    else:
        assert scores is not None
        if guesses is None:
            raise DomainError("Expected --guesses with --scores, a number fixed before seeing the scores.")
        if choices != 2:
            raise DomainError(f"Expected --alternatives 2 with --scores, got {choices}.")
        if one_sided and clearest:
            raise DomainError("Expected --one-sided or --clearest, got both.")
        found = counted(
            scores.expanduser(),
            score_column,
            included_column,
            int(domain("guesses", guesses)),
            one_sided=one_sided,
            clearest=clearest,
            centre=middle,
            shuffles=0 if null_check is None else int(REPETITIONS.check(number(null_check))),
        )
    content = audited(found, tolerated, level, alternatives=choices, claimed_epsilon=claim)
    print(as_json(content)) if json else _show(content)


def _show(content: Mapping[str, Any]) -> None:
    """Print an audit as text."""
    level, delta = exactly(content["confidence"]), exactly(content["delta"])
    print(
        f"{content['correct']} of {content['guesses']} guesses about {content['canaries']} canaries correct"
    )
    rows = [
        [name, rounded_down(epsilon), "for every mechanism"]
        for name, epsilon in content["refuted_epsilon"].items()
    ]
    rows += [
        [name, rounded_down(epsilon), "model-based: only if the mechanism behaves like Gaussian noise"]
        for name, epsilon in content["model_based_epsilon"].items()
    ]
    show(["audit", "epsilon", "holds"], rows, title=f"refuted at delta = {delta} with confidence {level}:")
    if "claim" in content:
        claim = content["claim"]
        bounds = ", ".join(f"{rounded_up(p)} by {name}" for name, p in claim["p_value"].items())
        verdict = "refuted" if claim["refuted"] else "not refuted"
        print(f"claim epsilon = {exactly(claim['epsilon'])}: {verdict}; p-value at most {bounds}")
    if "null_check" in content:
        check = content["null_check"]
        print(
            f"null check: {check['refuted']} of {check['audits']} audits with shuffled inclusion bits refute "
            f"some epsilon > 0; expected are at most about {check['nominal']:.4g}"
        )
