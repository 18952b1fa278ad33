"""Epsilon of a run under other samplers, for a user who did not say how the examples are sampled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flows.answers.compare import Answering, problems
from flows.answers.show import Aside
from flows.answers.sourced import Sourced
from flows.printing import filled, rounded_down, rounded_up
from storage.marks import origin_text

LIMIT_SECONDS = 1.0
"""Estimated time above which a method is not started for this comparison, in seconds."""

TITLES = {"poisson": "Poisson sampling", "shuffling": "shuffled batches"}


@dataclass(frozen=True, kw_only=True)
class OtherSamplers:
    """Answers for the samplers that a run may have had in place of random allocation.

    Attributes:
        participations: Steps of an epoch that use an example, in the answer for random allocation.
        answers: The answer for each sampler; None or a failed answer if it has none.
    """

    participations: int
    answers: Mapping[str, Sourced | None]

    def aside(self) -> Aside:
        """Return the comparison as one labelled sentence, and for JSON."""
        content = {
            "answered": "allocation",
            "given": False,
            "meaning": self._meaning(),
            "comparison": f"with {_others(self.answers)}",
            "others": {name: _content(answer) for name, answer in self.answers.items()},
        }
        others = f"with {_others(self.answers)}"
        sentence = f"random allocation (not given): {self._meaning()}; {others}: --sampling says which"
        return Aside(key="sampling", content=content, text=filled(f"sampling   {sentence}", indent=11))

    def _meaning(self) -> str:
        k = self.participations
        return f"each example in {k} random step{'s' if k > 1 else ''} of every epoch"


def other_samplers(
    options: Mapping[str, str | None],
    answering: Answering,
    *,
    examples: str | None,
    batch_size: str | None,
) -> OtherSamplers:
    """Ask about the same run with Poisson sampling and with shuffled batches.

    Args:
        options: As in `compare.problems`.
        answering: Function that answers a problem.
        examples: As in `training_question`.
        batch_size: As in `training_question`.
    """
    asked, _ = problems(options, examples=examples, batch_size=batch_size)
    return OtherSamplers(
        participations=int(asked["allocation"].as_fields()["participations"]),
        answers={name: answering(asked[name]) for name in TITLES if name in asked},
    )


def _others(answers: Mapping[str, Sourced | None]) -> str:
    return ", ".join(f"{TITLES[name]} {_ends(answer)}" for name, answer in answers.items())


def _ends(answer: Sourced | None) -> str:
    if answer is None or not answer.ok:
        return "unknown"
    origin = origin_text(answer.imported)
    ends = f"[{rounded_down(answer.bracket.lower)}, {rounded_up(answer.bracket.upper)}]"
    return f"{ends} ({origin})" if origin else ends


def _content(answer: Sourced | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {
        "problem": answer.problem.name,
        "fields": answer.problem.as_fields(),
        "status": answer.status,
        "lower": answer.bracket.lower,
        "upper": answer.bracket.upper,
        **({"imported": list(answer.imported)} if answer.imported else {}),
    }
