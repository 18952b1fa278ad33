"""Statement about the privacy of a training run, to paste into a paper or a model card, with its numbers.

Its parts are those of the statement of TensorFlow Privacy, with the trust model and the hazards that NIST
SP 800-226 describes: guarantee, unit of privacy, membership tests, mechanism, proof, assumptions, and
exclusions. They come from the declarations of the problem and of the methods, so every problem of a training
run has a statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from flows.answers.catalogue import meaning_of
from flows.answers.question import adjacency_of, phases_of
from flows.answers.show import Aside, is_trivial
from flows.answers.sourced import Sourced, computed
from flows.printing import exactly, listed, rounded_down, rounded_up
from privcore import METHODS, DomainError, Problem, find_problem
from privcore.training import RELATIONS, Phase, written
from storage.schema import IMPORTS, NOT_RECOMPUTED

RATES = (1e-3, 1e-2)
"""False positive rates of the membership tests in a statement."""


@dataclass(frozen=True, kw_only=True)
class MembershipTests:
    """Upper ends for every test of whether a unit of privacy was used.

    Attributes:
        powers: Largest true positive rate by false positive rate.
        advantage: Largest difference of the two rates.
    """

    powers: Mapping[float, float]
    advantage: float

    @property
    def sentence(self) -> str:
        """Text of the numbers, rounded up."""
        powers = " and ".join(
            f"{rounded_up(power)} at a false positive rate of {exactly(rate)}"
            for rate, power in self.powers.items()
        )
        return (
            f"a test of membership has a true positive rate of at most {powers}; the advantage of every test "
            f"is at most {rounded_up(self.advantage)}."
        )

    def as_content(self) -> dict[str, Any]:
        """Return the content of the JSON output."""
        powers = [
            {"false_positive_rate": rate, "largest_true_positive_rate": power}
            for rate, power in self.powers.items()
        ]
        return {"rates": powers, "largest_advantage": self.advantage}


def membership_tests(problem: Problem, limit_seconds: float) -> MembershipTests | None:
    """Return bounds of the membership tests on the run of a problem about epsilon; None without an answer.

    Tests of membership and tests of absence are bounded, so a direction of a relation counts as the relation.

    Args:
        problem: The problem.
        limit_seconds: As in `ask`, for each of the numbers.
    """
    relation = RELATIONS[adjacency_of(problem)]
    fields = {"phases": written(phases_of(problem)), "adjacency": relation}
    powers = {}
    for rate in RATES:
        power = _upper("run-tpr", fields | {"false_positive_rate": rate}, limit_seconds)
        if power is None:
            return None
        powers[rate] = power
    advantage = _upper("run-advantage", fields, limit_seconds)
    return None if advantage is None else MembershipTests(powers=powers, advantage=advantage)


def epsilon_of_one(problem: Problem, limit_seconds: float) -> float | None:
    """Return an upper bound of epsilon for one example of an owner; None if every owner has one example.

    Args:
        problem: The problem.
        limit_seconds: As in `ask`.
    """
    run, fields = phases_of(problem), problem.as_fields()
    if all(phase.owned == 1 for phase in run):
        return None
    asked = {"phases": written(tuple(_alone(phase) for phase in run))}
    known = {name: fields[name] for name in ("adjacency", "delta")}
    return _upper("run-epsilon", asked | known, limit_seconds)


def _alone(phase: Phase) -> Phase:
    """Return the phase for owners of one example."""
    return replace(phase, **({"group": 1} if "group" in phase.parameters else {}))


def _upper(name: str, fields: Mapping[str, Any], limit_seconds: float) -> float | None:
    """Return the upper end of a problem; None if no method gives one in time."""
    answer = computed(find_problem(name).from_fields(fields), limit_seconds=limit_seconds)
    return answer.bracket.upper if answer.ok and answer.bracket.upper_by else None


FORMATS = ("text", "markdown")

NEIGHBOURS = {
    "add-remove": "one of them has {one} more than the other (add-remove)",
    "remove": "the first has {one} more than the second (add-remove, in the direction remove)",
    "add": "the second has {one} more than the first (add-remove, in the direction add)",
    "zero-out": "the gradient of {one} is 0 in one of them (zero-out)",
    "zero-out-remove": "the gradient of {one} is 0 in the second (zero-out, in the direction remove)",
    "zero-out-add": "the gradient of {one} is 0 in the first (zero-out, in the direction add)",
    "replace-one": "{one} of the first is replaced by another in the second (replace-one)",
}
"""Neighbouring relations in words, for two data sets; `{one}` is the unit of privacy."""

ASSUMED = (
    "the examples of each step are chosen as stated, with a secret seed",
    "gradients are clipped to a fixed norm",
    "sigma is the standard deviation of the Gaussian noise divided by this norm",
    "the sum of the clipped gradients, with noise, is divided by a constant",
    "the outputs of all steps may be published",
)
EXCLUDED = (
    "the search for hyper-parameters",
    "clipping norms, noise or stopping times that depend on the data",
    "division by the realised size of a batch",
    "other uses of the same data, and access to the data while they are collected and stored",
    "errors of the implementation, such as predictable random numbers, and side channels",
)

TUNED = (
    "only the best run is published, and neither the others nor their number",
    "each run has noise and batches of its own, and its settings do not depend on the data",
    "the score of a run is computed from its outputs, without the data",
)
"""Assumed in addition, if the best of several runs is published."""
BEYOND_TUNED = ("a search for hyper-parameters beyond these runs", *EXCLUDED[1:])

TRUSTED = "The training is trusted with the data (central model)."
ASSUMED_SENTENCE = f"{'; '.join(ASSUMED)}. {TRUSTED}"
EXCLUDED_SENTENCE = f"{'; '.join(EXCLUDED)}."
AUTHOR_SENTENCE = f"the author of the lookup table {{}}, whose rows were {NOT_RECOMPUTED}."
"""Origin of an end from a row of a lookup table; `{}` is the version of the table."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement: labelled sentences, and its facts for JSON."""

    parts: tuple[tuple[str, str], ...]
    facts: dict[str, Any]

    def text(self, form: str) -> str:
        """Return one paragraph of text, or a list in Markdown."""
        if form == "markdown":
            return "\n".join(
                ["**Differential privacy**", "", *(f"- *{name}:* {what}" for name, what in self.parts)]
            )
        return " ".join(f"{name}: {what}" for name, what in self.parts)

    def aside(self, form: str) -> Aside:
        """Return the statement for an answer in JSON."""
        text = self.text(form)
        return Aside(key="statement", content=self.facts | {"text": text}, text=text)


def checked_format(word: str) -> str:
    """Return the format of a statement; raises `DomainError` for another word."""
    if word not in FORMATS:
        raise DomainError(f"Expected --statement {' or '.join(FORMATS)}, got {word!r}.")
    return word


def statement(answer: Sourced, *, limit_seconds: float) -> Statement:
    """Return the statement about an answer.

    Args:
        answer: The answer to a problem about epsilon at a delta, with a neighbouring relation.
        limit_seconds: Estimated time above which no method is started for a further number; with 0, the
            statement has only the numbers of the answer.

    Raises:
        DomainError: No upper end is proved, or the problem has another quantity.
    """
    problem, bracket, fields = answer.problem, answer.bracket, answer.problem.as_fields()
    if problem.asks != "epsilon" or not {"delta", "adjacency"} <= fields.keys():
        raise DomainError(f"Expected a problem about epsilon of a training run, got {problem.name}.")
    if is_trivial(problem, bracket) or not bracket.upper_by or bracket.confidence < 1.0:
        raise DomainError("Expected an answer with a proved upper end for --statement, got none.")
    unit, adjacency, delta = unit_of(problem), adjacency_of(problem), exactly(fields["delta"])
    upper, lower = rounded_up(bracket.upper), rounded_down(bracket.lower)
    relation = neighbours(unit, adjacency)
    proofs = {"upper": _proof(bracket.upper_by), "lower": _proof(bracket.lower_by)}
    least = f"; for the worst data sets it is not less than {lower}" if bracket.lower_by else ""
    guarantee = f"({upper}, {delta})-differential privacy"
    mechanism = f"{meaning_of(type(problem))} Parameters: {listed(fields)}."
    shares = [exactly(share) for phase in phases_of(problem) if (share := getattr(phase, "dropped", 0.0))]
    if shares:
        mechanism += f" Shuffled epochs leave out the share {', '.join(shares)} of the examples, at random."
    is_tuned = "repeats" in fields  # the numbers of one run are not those of the best of several
    more = limit_seconds > 0.0 and not is_tuned
    tests = membership_tests(problem, limit_seconds) if more else None
    single = epsilon_of_one(problem, limit_seconds) if more else None
    assumed, excluded = (ASSUMED + TUNED, BEYOND_TUNED) if is_tuned else (ASSUMED, EXCLUDED)
    alone = "" if single is None else f" For one example alone, epsilon is at most {rounded_up(single)}."
    below = f"; lower end: {proofs['lower']}" if proofs["lower"] not in (None, proofs["upper"]) else ""
    parts = (
        (
            "Guarantee",
            f"{guarantee}: epsilon is at most {upper} at delta={delta}{least}.{alone}",
        ),
        ("Unit of privacy", unit_sentence(unit, adjacency)),
        *([("Membership", tests.sentence)] if tests else []),
        ("Accounted for", mechanism),
        ("Proof", f"{'both ends' if not below and least else 'upper end'}: {proofs['upper']}{below}."),
        ("Assumed", f"{'; '.join(assumed)}. {TRUSTED}"),
        ("Not covered", f"{'; '.join(excluded)}."),
        ("Computed by", computed_by(bracket.tables)),
    )
    return Statement(
        parts=parts,
        facts={
            "unit": unit,
            "adjacency": adjacency,
            "neighbours": relation,
            "delta": fields["delta"],
            "lower": bracket.lower,
            "upper": bracket.upper,
            "upper_for_one_example": single,
            "membership": tests and tests.as_content(),
            "lower_proof": proofs["lower"],
            "upper_proof": proofs["upper"],
            "mechanism": meaning_of(type(problem)),
            "parameters": fields,
            "sampler_declared": True,
            "assumed": list(assumed),
            "trust_model": "central",
            "not_covered": list(excluded),
            IMPORTS: list(bracket.tables),
            "version": version("privsweep"),
        },
    )


def computed_by(tables: Sequence[str]) -> str:
    """Return the sentence about the program, and about the authors of lookup tables."""
    program = f"privsweep {version('privsweep')}"
    if not tables:
        return f"{program}, rounding errors included."
    return f"{AUTHOR_SENTENCE.format(' and '.join(tables))} Looked up by {program}."


def neighbours(unit: str, adjacency: str) -> str:
    """Return the neighbouring relation in words for a unit of privacy."""
    relation = NEIGHBOURS[adjacency].format(one=unit.partition(" with ")[0])
    return f"two data sets are neighbours if {relation}"


def unit_sentence(unit: str, adjacency: str) -> str:
    """Return the unit of privacy and the neighbouring relation in one sentence."""
    return f"{unit}; {neighbours(unit, adjacency)}."


def unit_of(problem: Problem) -> str:
    """Return the unit of privacy: an example, or the examples of an owner, for each phase if they differ."""
    owned = [phase.owned for phase in phases_of(problem)]
    if max(owned) == 1:
        return "one example"
    if len(set(owned)) == 1:
        return f"one owner with at most {owned[0]} examples"
    first, *others = enumerate(owned, 1)
    listed = [f"{first[1]} examples in phase {first[0]}", *(f"{n} in phase {place}" for place, n in others)]
    return f"one owner with at most {', '.join(listed)}"


def _proof(method: str) -> str | None:
    """Return the method of an end with its version and reference; None without a method."""
    if not method:
        return None
    claims = METHODS.get(method)
    return method if claims is None else f"{method}, version {claims.version} ({claims.reference})"
