"""The command about membership inference: upper bounds for every attack, lower bounds from one attack."""

from typing import Annotated

import typer

from flows.answers.membership import sandwich_of, show_sandwich
from flows.cli import options
from flows.cli.options import Json
from flows.printing import as_json, say
from flows.spec.words import RELATIONS
from privcore import DomainError, ExitCode
from privcore.params import DELTA_MEANING


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
    if adjacency is not None and neighbours is not None:
        raise DomainError("Expected --adjacency or its former name --neighbours, got both.")
    content = sandwich_of(
        law=law,
        sample=sample,
        records=records,
        epsilon=epsilon,
        delta=delta,
        adjacency=neighbours if adjacency is None else adjacency,
        bits=bits,
        information=information,
        attack=attack,
        nonmember_share=nonmember_share,
        member_weight=member_weight,
        confidence=confidence,
    )
    say(as_json(content)) if json else show_sandwich(content)
    if not content["consistent"]:
        raise typer.Exit(ExitCode.FAILED)
