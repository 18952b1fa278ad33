"""The command about labels: bags of labels and randomized response on one footing."""

import sys
from functools import partial
from typing import Annotated

import typer

from flows.answers.labels import LabelComparison, content_of, text_of
from flows.cli.options import Json
from flows.printing import as_json
from flows.spec.words import checked
from privcore import DomainError


def labels(
    *,
    prior: Annotated[str, typer.Option(metavar="LAW", help='Law of eta, such as "beta(2,30)" or "uniform".')],
    bag_size: Annotated[str | None, typer.Option(metavar="NUMBER", help="Examples in a bag.")] = None,
    versus_rr: Annotated[
        str | None, typer.Option("--versus-rr", metavar="EPSILON", help="Of the randomized response.")
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(metavar="WORD", help="What a bag releases: llp, llp-geometric or llp-laplace."),
    ] = "llp",
    label_epsilon: Annotated[
        str, typer.Option(metavar="EPSILON", help="Of the noise that a bag's sum gets.")
    ] = "inf",
    level: Annotated[str, typer.Option(metavar="NUMBER", help="Level of the ratio's quantile.")] = "0.98",
    json: Json = False,
) -> None:
    """What bags of labels reveal, beside randomized response, and where both reveal as much.

    Two measures: how much more often the best guess of a label is right (additive advantage), and the
    quantile of the absolute log-likelihood ratio of the two labels (multiplicative advantage), in nats and in
    bits, its logarithm to base 2.
    """
    domain = partial(checked, "label-ratio-quantile")
    if bag_size is None and versus_rr is None:
        raise DomainError("Expected --bag-size, --versus-rr, or both.")
    waits = sys.stderr.isatty() and not json
    comparison = LabelComparison(
        prior=str(domain("prior", prior)),
        mechanism=str(domain("mechanism", mechanism)),
        label_epsilon=float(domain("label_epsilon", label_epsilon)),
        level=float(domain("level", level)),
        report=(lambda text: print(f"\r{text:70}", end="", file=sys.stderr)) if waits else lambda _: None,
    )
    if comparison.mechanism not in ("llp", "llp-geometric", "llp-laplace"):
        raise DomainError(
            f"Expected --mechanism in {{llp, llp-geometric, llp-laplace}}, got {comparison.mechanism}."
        )
    k = None if bag_size is None else int(domain("bag_size", bag_size))
    epsilon = None if versus_rr is None else float(domain("label_epsilon", versus_rr))
    if epsilon == float("inf"):
        raise DomainError("Expected a finite --versus-rr, got inf.")
    content = content_of(comparison, k, epsilon)
    if waits:
        print(f"\r{'':70}\r", end="", file=sys.stderr)
    print(as_json(content) if json else text_of(content))
