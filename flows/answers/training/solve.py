"""The largest number of steps or epochs, or the largest batch size, whose epsilon is at most a target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from flows.answers.ask import LIMIT_SECONDS, Asked, UncoveredError
from flows.answers.question import question, typed
from flows.answers.show import methods_text
from flows.answers.sourced import asked_until_tight
from flows.answers.training.noise import TARGET, suffices
from flows.printing import listed, rounded_down, rounded_up, say
from privcore import Bracket, DomainError, LimitError, Status
from privcore.parameter import Integer
from privcore.params import EPOCHS, EXAMPLES, STEPS
from privcore.training import FEWER_STEPS

SOLVED: dict[str, Integer] = {"steps": STEPS, "epochs": EPOCHS, "batch_size": EXAMPLES}
"""Words whose largest value may be asked, with their domains."""


@dataclass(frozen=True, kw_only=True)
class MostThatSuffices:
    """A value that is proved to suffice for a target, and its neighbour that is proved not to.

    Attributes:
        word: One of `SOLVED`.
        target: The largest epsilon that is allowed.
        value: The largest value that suffices; for steps of samplers whose epsilon falls in them, the least.
        enough: The bracket of epsilon at the value.
        beyond: The next value; None if the value is at the end of its domain.
        short: The bracket there.
        brackets: Number of brackets that were computed.
    """

    word: str
    target: float
    value: int
    enough: Asked
    beyond: int | None
    short: Asked | None
    brackets: int

    def as_content(self) -> dict[str, Any]:
        """Return the content of the JSON output."""
        proved = self.short is not None and self.short.lower > self.target
        return {
            "problem": self.enough.problem.name,
            "fields": self.enough.problem.as_fields(),
            "epsilon": self.target,
            "solved": self.word,
            "value": self.value,
            "lower": self.enough.lower,
            "upper": self.enough.upper,
            "value_short": self.beyond if proved else None,
            "lower_short": self.short.lower if self.short is not None and proved else None,
            "method": self.enough.upper_by,
            "brackets": self.brackets,
        }


def solved(
    word: str, words: Mapping[str, object], *, target: object, limit_seconds: float = LIMIT_SECONDS
) -> tuple[Callable[[], MostThatSuffices], list[str]]:
    """Return the function that searches the largest value of a word of a run, and notes about the question.

    The search looks at single values and needs no trend: each of both answers is proved by its own bracket.

    Args:
        word: One of `SOLVED`.
        words: As in `question`, without this word.
        target: The largest epsilon that is allowed.
        limit_seconds: As in `ask`, for one bracket.

    Raises:
        PrivsweepError: Words contradict one another, or the word cannot be solved for.
    """
    name = str(word).replace("-", "_")
    if name not in SOLVED:
        raise DomainError(f"Expected one of {{{', '.join(SOLVED)}}} to solve for, got {str(word)[:50]}.")
    given = typed({**words, "epsilon": target})
    allowed = float(TARGET.check(given.pop("epsilon", None)))
    if name in given or (name == "steps" and "batch_size" in given):
        raise DomainError(f"Expected no --{word}, which is solved for, or its sizes.")
    if name == "steps" and given.get("sampling") == "none":
        raise DomainError(
            "Expected to solve for epochs with sampling none: only the steps that use an example matter."
        )
    if name == "batch_size" and "examples" not in given:
        raise DomainError("Expected --examples to solve for the batch size.")
    most = int(given["examples"]) if name == "batch_size" else int(SOLVED[name].upper)
    notes = question({**given, name: 1}).notes if name != "batch_size" else []
    falls = name == "steps" and given.get("sampling") in FEWER_STEPS
    return partial(_searched, name, given, allowed, most, falls, limit_seconds), notes


def _searched(
    name: str, given: Mapping[str, Any], target: float, most: int, falls: bool, limit_seconds: float
) -> MostThatSuffices:
    """Return the result of the search: powers of two, and then halves between two of them."""
    looked: list[int] = []

    @cache
    def look(value: int) -> Asked:
        looked.append(value)
        return asked_until_tight(question({**given, name: value}).problem, limit_seconds=limit_seconds)

    def good(value: int) -> bool:
        return suffices(look(value), target) is not falls  # below the border, in either direction

    low, high = 0, 1
    while high < most and good(high):
        low, high = high, min(2 * high, most)
    if high == most and good(most):
        low, high = most, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    value, beyond = (high, low) if falls else (low, high)
    if not 1 <= value <= most:
        asked = look(1 if not falls else most)
        kind = LimitError if asked.status in {Status.TIMEOUT, Status.OUT_OF_MEMORY} else UncoveredError
        why = asked.detail.rstrip(".") or f"at {1 if not falls else most} epsilon may be {asked.upper:.6g}"
        raise kind(f"No value of {name} is proved to reach epsilon={target!r}: {why}.")
    known = 1 <= beyond <= most
    return MostThatSuffices(
        word=name,
        target=target,
        value=value,
        enough=look(value),
        beyond=beyond if known else None,
        short=look(beyond) if known else None,
        brackets=len(looked),
    )


def print_solved(found: MostThatSuffices) -> None:
    """Print the value that suffices, and its neighbour that does not.

    Args:
        found: Result of the search.
    """
    say(f"{found.word}={found.value} suffices: epsilon is at most {rounded_up(found.enough.upper)}")
    if found.short is not None and found.short.lower > found.target:
        say(f"{found.word}={found.beyond} does not: epsilon is at least {rounded_down(found.short.lower)}")
    elif found.beyond is None:
        say(f"{found.word}: no further value is possible")
    else:
        say(f"{found.word}={found.beyond}: nothing is proved about it")
    if found.word == "batch_size":
        say("larger     some batch sizes may suffice again, since the steps of an epoch are rounded")
    problem = found.enough.problem
    say(f"problem    {problem.name} {listed(problem.as_fields())}")
    by = Bracket(lower_by=found.short.lower_by if found.short else "", upper_by=found.enough.upper_by)
    say(f"methods    {methods_text(by)}")
    say(f"source     computed now, from {found.brackets} brackets of epsilon")
