"""The command about labels: a comparison of bags of labels with randomized response."""

from dataclasses import replace
from typing import Annotated

import typer

from flows.answers.label_text import LEGEND, paragraphs
from flows.answers.labels import compared, contents_of
from flows.cli.options import Json, waiting
from flows.printing import as_json, say


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
    comparison, k, epsilon = compared(
        prior=prior,
        bag_size=bag_size,
        versus_rr=versus_rr,
        mechanism=mechanism,
        label_epsilon=label_epsilon,
        level=level,
        draw=draw,
    )
    shown = 0
    with waiting(f"comparing under {comparison.prior}") as report:
        # The first paragraphs do not wait for the searches.
        for content in contents_of(replace(comparison, report=report), k, epsilon):
            if not json:
                parts = paragraphs(content)
                say(*parts[shown:], sep="\n\n", end="\n\n", flush=True)
                shown = len(parts)
    say(as_json(content) if json else LEGEND)
