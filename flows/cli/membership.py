"""The command about membership inference: upper bounds for every attack, lower bounds from one attack."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from flows.answers.membership import AccuracyWeights, Known, sandwich
from flows.cli import options
from flows.cli.options import Json
from flows.printing import as_json, exactly, rounded_down, rounded_up, say, show
from flows.spec.words import RELATIONS, checked, number, relation_between_records
from privcore import DomainError, ExitCode
from privcore.params import DELTA_MEANING

_CLAIM = (
    "Expected --adjacency and --delta with --epsilon: at the same epsilon, add-remove allows up to twice the "
    "advantage of replace-one, and --delta 0 is pure differential privacy."
)


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
        tuple[str, str, str, str] | None,
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
    stated = neighbours if adjacency is None else adjacency
    privacy = None
    if epsilon is not None:
        if stated is None or delta is None:
            raise DomainError(_CLAIM)
        privacy = (
            float(checked("membership-private-advantage", "claimed_epsilon", epsilon)),
            float(checked("membership-private-advantage", "claimed_delta", delta)),
            relation_between_records(stated),
        )
    elif delta is not None or stated is not None:
        raise DomainError("Expected --delta and --adjacency with --epsilon only.")
    trials = None
    if attack is not None:
        counts = [number(text) for text in attack]
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            raise DomainError(f"Expected four counts for --attack, got {' '.join(attack)}.")
        trials = tuple(int(count) for count in counts)
    content = sandwich(
        Known(
            law=law,
            sample=sample,
            records=None if records is None else int(checked("membership-advantage", "records", records)),
            privacy=privacy,
            bits=None if bits is None else int(checked("membership-bits-advantage", "bits", bits)),
            information=None
            if information is None
            else float(checked("membership-information-advantage", "information", information)),
            attack=trials,  # type: ignore[arg-type]
            confidence=float(checked("membership-attack-advantage", "confidence_level", confidence)),
            tested=AccuracyWeights(
                nonmember_share=float(checked("membership-accuracy", "nonmember_share", nonmember_share)),
                member_weight=float(checked("membership-accuracy", "member_weight", member_weight)),
            ),
        )
    )
    say(as_json(content)) if json else _show(content)
    if not content["consistent"]:
        raise typer.Exit(ExitCode.FAILED)


def _show(content: Mapping[str, Any]) -> None:
    """Print the bounds as text."""
    from flows.answers.show import sure

    rows = [
        [
            row["known"],
            rounded_down(row["lower"]),
            rounded_up(row["upper"]),
            row["kind"].removeprefix("confidence "),
            row["method"],
        ]
        for row in content["bounds"]
    ]
    show(["known", "at least", "at most", "confidence", "by"], rows, title="advantage of the best attack")
    if content["assumed"]:
        say(f"assumed: {exactly(content['assumed'])}")
    if not content["consistent"]:
        sure_of = f", with confidence {sure(content['confidence'])}"
        say(f"the attack exceeds the upper bounds: a given fact is false of this learner{sure_of}")
        return
    doubt = "" if content["confidence"] == 1.0 else f" with confidence {sure(content['confidence'])}"
    weight = (
        "" if content["member_weight"] == 1.0 else f", a member counts {exactly(content['member_weight'])}"
    )
    say(f"tested records: a share of {exactly(content['nonmember_share'])} are non-members{weight}")
    certain = content.get("certain")
    if certain and (certain["advantage"]["lower"], certain["advantage"]["upper"]) == (0.0, 1.0):
        certain = None  # nothing is proved without the data
    for name in ("advantage", "security", "accuracy"):
        text = f"{name:9} in {_ends(content, name)}{doubt}{_given(content)}"
        if certain:
            text += f"; certain {_ends(certain, name)}{_given(certain)}"
        say(text)


def _ends(content: Mapping[str, Any], name: str) -> str:
    """Return both ends of a quantity, rounded outwards."""
    return f"[{rounded_down(content[name]['lower'])}, {rounded_up(content[name]['upper'])}]"


def _given(content: Mapping[str, Any]) -> str:
    """Return the condition of a bracket, or ""."""
    return ", for the values of the file alone" if content["conditional"] else ""
