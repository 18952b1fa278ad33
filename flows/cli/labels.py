"""Commands about label inference and membership inference."""

from dataclasses import replace
from typing import Annotated

import typer

from flows.answers.label_text import LEGEND, paragraphs
from flows.answers.labels import compared, contents_of
from flows.answers.membership import sandwich_of, show_sandwich
from flows.cli import options
from flows.cli.options import Json, waiting
from flows.printing import as_json, say
from flows.spec.words import RELATIONS
from privcore import DomainError, ExitCode
from privcore.params import DELTA_MEANING


def labels(
    *,
    prior: Annotated[
        str, typer.Option(metavar="PRIOR", help='Distribution of eta: "uniform", "beta(2,30)", ...')
    ],
    bag_size: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Number of examples in a bag.")
    ] = None,
    versus_rr: Annotated[
        str | None, typer.Option("--versus-rr", metavar="EPSILON", help="Epsilon of the randomized response.")
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(metavar="WORD", help="Mechanism of the bags: llp, llp-geometric or llp-laplace."),
    ] = "llp",
    label_epsilon: Annotated[
        str, typer.Option(metavar="EPSILON", help="Epsilon of the noise on the sum of a bag.")
    ] = "inf",
    level: Annotated[
        str, typer.Option(metavar="NUMBER", help="Level of the quantile of the log-likelihood ratio.")
    ] = "0.98",
    draw: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Bags of a column: partition (the file cut into random bags; default) or with-replacement.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare bags of labels with randomized response, and find when both reveal the same.

    There are two measures. The additive advantage is the increase in the probability that the best guess of
    a label is right. The multiplicative advantage is a quantile of the absolute log-likelihood ratio of the
    two labels, in nats and in bits. Eta is the probability of label 1 given the features of an example.
    """
    words = dict(locals())
    del words["json"]
    comparison, k, epsilon = compared(**words)
    shown = 0
    with waiting(f"comparing under {comparison.prior}") as report:
        # The first paragraphs do not wait for the searches.
        for content in contents_of(replace(comparison, report=report), k, epsilon):
            if not json:
                parts = paragraphs(content)
                say(*parts[shown:], sep="\n\n", end="\n\n", flush=True)
                shown = len(parts)
    say(as_json(content) if json else LEGEND)


def membership(  # noqa: PLR0913  the options of a command are its arguments
    *,
    law: Annotated[
        str | None,
        typer.Option(metavar="NAME", help='Distribution of a discrete record, such as "zipf(1.2)".'),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="COUNTS", help='Counts of a sample: "60,30,10" or "column(FILE,NAME)".'),
    ] = None,
    records: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Number of records in the training set.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Epsilon of the private learner.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help=f"{DELTA_MEANING}; 0 is pure differential privacy.")
    ] = None,
    adjacency: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Neighbouring relation of --epsilon, which needs it: add-remove or replace-one. At the same "
            "epsilon, add-remove allows up to twice the advantage.",
            autocompletion=options.words(*RELATIONS),
        ),
    ] = None,
    neighbours: Annotated[str | None, typer.Option(hidden=True)] = None,
    bits: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Number of bits that the learner releases.")
    ] = None,
    information: Annotated[
        str | None, typer.Option(metavar="NATS", help="Mutual information of the release and one record.")
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(
            metavar="TP MEMBERS FP NONMEMBERS",
            help="Counts of an attack, with one training run for each trial.",
        ),
    ] = None,
    nonmember_share: Annotated[
        str, typer.Option(metavar="NUMBER", help="Share of non-members among the tested records.")
    ] = "0.5",
    member_weight: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help="Weight of a member that is found, if a non-member has weight 1."
        ),
    ] = "1",
    confidence: Annotated[
        str, typer.Option(metavar="NUMBER", help="Joint confidence of all bounds from data.")
    ] = "0.95",
    json: Json = False,
) -> None:
    """Bound the advantage of every membership inference attack on a learner from given facts.

    The advantage is 0 for guessing and 1 for certainty; the security is 1 minus the advantage. The upper
    bounds hold for every attack on every learner that satisfies the facts, over training runs and records.
    """
    words = dict(locals())
    del words["json"]
    former = words.pop("neighbours")
    if adjacency is not None and former is not None:
        raise DomainError("Expected --adjacency or its former name --neighbours, got both.")
    content = sandwich_of(**words | {"adjacency": former if adjacency is None else adjacency})
    say(as_json(content)) if json else show_sandwich(content)
    if not content["consistent"]:
        raise typer.Exit(ExitCode.FAILED)
