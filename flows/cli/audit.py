"""The command about audits in one run: from scores of canaries, or their counts, to refuted epsilons."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json
from flows.printing import as_json, say


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
    roc: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of a ROC curve instead, with the columns fpr and tpr, whose thresholds were fixed "
            "beforehand; needs --runs.",
        ),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(metavar="WITH WITHOUT", help="Training runs with and without the record, for --roc."),
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
        str | None,
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
            "guarantee(epsilon=1), profile(curve=FILE), the phases of a training run, or a "
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
    words = dict(locals())
    from flows.answers.audits.audit_words import audit_of, show_audit, show_curve

    del words["json"]
    content = audit_of(**words)
    show = show_curve if roc else show_audit
    say(as_json(content)) if json else show(content)
