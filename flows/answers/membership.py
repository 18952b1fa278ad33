"""Combine all known bounds on membership inference for one learner."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flows.answers.ask import Asked, ask
from flows.answers.show import certainty, sure
from flows.printing import exactly, rounded_down, rounded_up, say, show
from flows.spec.words import checked, relation_between_records, value_of
from privcore import Bracket, DomainError, Problem, find_problem, intersect


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One fact about a learner, and the problem that follows from it.

    Attributes:
        what: The fact in words, for the table.
        about: The learners over which the answer is a maximum: `all` that satisfy the fact, or `this` one.
        question: The problem.
    """

    what: str
    about: str
    question: Problem


@dataclass(frozen=True, kw_only=True)
class AccuracyWeights:
    """The shares of tested records, and the weight of a member that is found.

    Attributes:
        nonmember_share: Probability nu that the tested record is fresh, in (0, 1).
        member_weight: Weight lambda > 0 of members that are found.
    """

    nonmember_share: float = 0.5
    member_weight: float = 1.0

    @property
    def odds(self) -> float:
        """The odds gamma that the advantage depends on."""
        return self.nonmember_share / (self.member_weight * (1.0 - self.nonmember_share))

    def accuracy(self, advantage: float) -> float:
        """Return the best weighted accuracy at an advantage."""
        fresh, member = self.nonmember_share, self.member_weight * (1.0 - self.nonmember_share)
        return max(fresh, member) + min(fresh, member) * advantage


@dataclass(frozen=True, kw_only=True)
class Known:
    """The facts that a user states about a learner; None if unknown.

    Attributes:
        law: Distribution of a discrete record.
        sample: Sample of records from an unknown distribution.
        records: Size of the training set.
        privacy: Epsilon and delta, with their neighbouring relation.
        bits: Number of released bits.
        information: Mutual information of the release and a record, in nats.
        attack: True positives, members, false positives and non-members of an attack that was run.
        confidence: Probability that all bounds from data hold together.
    """

    law: str | None = None
    sample: str | None = None
    records: int | None = None
    privacy: tuple[float, float, str] | None = None
    bits: int | None = None
    information: float | None = None
    attack: tuple[int, int, int, int] | None = None
    confidence: float = 0.95
    tested: AccuracyWeights = AccuracyWeights()

    def evidence(self) -> Iterable[Evidence]:
        """Yield the problems that follow; raises `DomainError` if the size of the training set is missing."""
        odds = {"odds": self.tested.odds}
        sure = odds | {"confidence_level": self._confidence_of_each()}
        if self.attack is not None:
            names = ("true_positives", "members", "false_positives", "nonmembers")
            counts = dict(zip(names, self.attack, strict=True))
            yield _evidence("a tried attack", "this", "membership-attack-advantage", counts | sure)
        if self.law is not None:
            given = {"law": self.law, "records": self._records("--law")} | odds
            yield _evidence(f"records of {_short(self.law)}", "all", "membership-advantage", given)
        if self.sample is not None:
            given = {"sample": self.sample, "records": self._records("--sample")} | sure
            yield _evidence(f"a sample {_short(self.sample)}", "all", "membership-sample-advantage", given)
        if self.privacy is not None:
            epsilon, delta, neighbours = self.privacy
            given = {"claimed_epsilon": epsilon, "claimed_delta": delta, "neighbours": neighbours} | odds
            relation = "replace-one" if neighbours == "substitution" else neighbours
            what = f"({epsilon:g}, {delta:g})-DP, {relation}"
            yield _evidence(what, "all", "membership-private-advantage", given)
        if self.bits is not None:
            given = {"bits": self.bits, "records": self._records("--bits")}
            yield _evidence(f"{self.bits} bits released", "all", "membership-bits-advantage", given)
        if self.information is not None:
            given = {"information": self.information}
            what = f"{self.information:g} nats about a record"
            yield _evidence(what, "all", "membership-information-advantage", given)

    def _confidence_of_each(self) -> float:
        """Return the confidence of each bound from data, so that all hold together (Bonferroni).

        It depends only on the number of given facts, which is known before the data, and not on the bounds.
        It is rounded up, so the errors add up to at most the allowed error.
        """
        number = sum(fact is not None for fact in (self.attack, self.sample))
        if number <= 1:
            return self.confidence
        exact = 1 - (1 - Fraction(self.confidence)) / number
        rounded = float(exact)
        each = rounded if rounded >= exact else math.nextafter(rounded, 1.0)
        if each == 1.0:
            raise DomainError(
                f"Expected a smaller --confidence with {number} facts from data, got {self.confidence!r}."
            )
        return each

    def _records(self, option: str) -> int:
        if self.records is None:
            raise DomainError(f"Expected --records with {option}: the number of records in the training set.")
        return self.records


def _evidence(what: str, about: str, problem: str, fields: Mapping[str, Any]) -> Evidence:
    return Evidence(what=what, about=about, question=find_problem(problem).from_fields(dict(fields)))


def _short(text: str) -> str:
    """Return a distribution as it was written, shortened and without the hash of its data."""
    shown = text.split(",sha256:", maxsplit=1)[0] + ")" if ",sha256:" in text else text
    return shown if len(shown) <= 50 else f"{shown[:47]}..."


def sandwich(known: Known) -> dict[str, Any]:
    """Combine all known bounds on membership inference for one learner; return them for JSON.

    The advantage of the best attack on this learner is at most the largest advantage over all learners that
    satisfy the same facts, and at least the advantage of an attack that was run. The errors of bounds from
    data add up to at most the error that is allowed, so the bracket holds with the confidence of `known`. If
    the data do not narrow the bracket that is proved without them, the bracket is the proved one.

    Args:
        known: The facts about the learner.

    Returns:
        The bounds, a row each, and the bracket of the advantage, of the security and of the best accuracy.

    Raises:
        DomainError: No fact is given, or a fact is impossible.
    """
    rows = [_row(evidence, ask(evidence.question), known.tested.odds) for evidence in known.evidence()]
    if not rows:
        raise DomainError(
            "Expected at least one fact: --law, --sample, --epsilon, --bits, --information or --attack."
        )
    proved = [row for row in rows if row["confidence"] == 1.0]
    bracket, certain = _bracket(rows), _bracket(proved)
    narrower = (bracket.lower, bracket.upper) != (certain.lower, certain.upper)
    used, bracket = (rows, bracket) if narrower else (proved, certain)
    confidence = _joint(used, bracket, known.confidence)
    content: dict[str, Any] = {
        "nonmember_share": known.tested.nonmember_share,
        "member_weight": known.tested.member_weight,
        "odds": known.tested.odds,
        "bounds": rows,
        "consistent": not bracket.crossed,
        "confidence": confidence,
        "assumed": "; ".join(filter(None, (row["assumed"] for row in rows))),
        "conditional": not bracket.crossed and _conditional(used, bracket),
    }
    if bracket.crossed:
        return content
    content |= _quantities(bracket, known.tested)
    if confidence < 1.0:
        content["certain"] = {
            "conditional": _conditional(proved, certain),
            **_quantities(certain, known.tested),
        }
    return content


def _bracket(rows: Sequence[Mapping[str, Any]]) -> Bracket:
    """Return the bracket of the advantage that follows from all rows together."""
    ends = ("lower", "upper", "confidence")
    return intersect([Bracket(upper=1.0), *(Bracket(**{end: row[end] for end in ends}) for row in rows)])


def _joint(rows: Sequence[Mapping[str, Any]], bracket: Bracket, confidence: float) -> float:
    """Return the confidence that was asked for, if the exact sum of the errors of all rows permits it."""
    error = sum((1 - Fraction(row["confidence"]) for row in rows), Fraction())
    return confidence if 0 < error <= 1 - Fraction(confidence) else bracket.confidence


def _conditional(rows: Sequence[Mapping[str, Any]], bracket: Bracket) -> bool:
    """Return whether an end of the bracket comes only from rows that hold under an assumption."""
    uppers = [bool(row["assumed"]) for row in rows if row["upper"] == bracket.upper < 1.0]
    lowers = [bool(row["assumed"]) for row in rows if row["lower"] == bracket.lower > 0.0]
    return any(ends and all(ends) for ends in (uppers, lowers))


def _quantities(bracket: Bracket, tested: AccuracyWeights) -> dict[str, dict[str, float]]:
    """Return the brackets of the advantage, of the security and of the best accuracy."""
    return {
        "advantage": {"lower": bracket.lower, "upper": bracket.upper},
        "security": {"lower": 1.0 - bracket.upper, "upper": 1.0 - bracket.lower},
        "accuracy": {"lower": tested.accuracy(bracket.lower), "upper": tested.accuracy(bracket.upper)},
    }


def _row(evidence: Evidence, asked: Asked, odds: float) -> dict[str, Any]:
    """Return the bounds for this learner: a maximum over many learners is not a lower bound for each."""
    if not asked.ok:
        raise DomainError(f"No answer from {evidence.question.name}: {asked.detail}")
    mine = evidence.about == "this"
    # Limits without odds are those of odds 1, the largest: for other odds they are not lower ends.
    least = asked.lower if odds in (1.0, evidence.question.as_fields().get("odds")) else 0.0
    return {
        "known": evidence.what,
        "problem": evidence.question.name,
        "fields": evidence.question.as_fields(),
        "lower": asked.lower if mine else 0.0,
        "upper": asked.upper,
        "worst_case": None if mine else {"lower": least, "upper": asked.upper},
        "confidence": asked.confidence,
        "kind": certainty(evidence.question, asked.confidence),
        "assumed": evidence.question.assumption(),
        "method": asked.lower_by if mine else asked.upper_by,
    }


_CLAIM = (
    "Expected --adjacency and --delta with --epsilon: at the same epsilon, add-remove allows up to twice the "
    "advantage of replace-one, and --delta 0 is pure differential privacy."
)


def sandwich_of(  # noqa: PLR0913  the options of a command are its arguments
    *,
    law: str | None,
    sample: str | None,
    records: object,
    epsilon: object,
    delta: object,
    adjacency: str | None,
    bits: object,
    information: object,
    attack: str | Sequence[object] | None,
    nonmember_share: object,
    member_weight: object,
    confidence: object,
) -> dict[str, Any]:
    """Return the bounds for JSON; the arguments are the options of `privsweep membership`.

    Raises:
        DomainError: Options contradict one another, or are outside their domains.
    """
    privacy = None
    if epsilon is not None:
        if adjacency is None or delta is None:
            raise DomainError(_CLAIM)
        privacy = (
            float(checked("membership-private-advantage", "claimed_epsilon", epsilon)),
            float(checked("membership-private-advantage", "claimed_delta", delta)),
            relation_between_records(adjacency),
        )
    elif delta is not None or adjacency is not None:
        raise DomainError("Expected --delta and --adjacency with --epsilon only.")
    trials = None
    if attack is not None:
        words = re.split(r"[\s,;/]+", attack.strip()) if isinstance(attack, str) else list(attack)
        counts = [value_of(word, "attack") for word in words]
        if len(counts) != 4 or not all(isinstance(count, int) and count >= 0 for count in counts):
            raise DomainError(f"Expected four counts for --attack, got {' '.join(map(str, words))}.")
        trials = tuple(int(count) for count in counts)
    return sandwich(
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


def show_sandwich(content: Mapping[str, Any]) -> None:
    """Print the bounds as text."""
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
