"""Arguments from Python as the words that the commands check and complete."""

from collections.abc import Mapping
from typing import Any

from flows.answers.parse import training_question
from flows.printing import exactly
from privcore import DomainError, Problem


def question(
    sampling: str | None, options: Mapping[str, object], examples: int | None, batch_size: float | None
) -> tuple[type[Problem], dict[str, Any], list[str]]:
    """Return the problem about a training run, its fields, and notes about the way it was read.

    Args:
        sampling: The sampler; None if it was not given.
        options: Fields of the problem; None where not given.
        examples: Number of training examples.
        batch_size: Average number of examples in a step.

    Raises:
        DomainError: An argument is not a number, or contradicts another one.
    """
    return training_question(sampling, texts(options), examples=text(examples), batch_size=text(batch_size))


def texts(options: Mapping[str, object]) -> dict[str, str | None]:
    """Return each argument as a word, by its name."""
    return {name: text(value, name) for name, value in options.items()}


def text(value: object, name: str = "examples or batch_size") -> str | None:
    """Return an argument as a word with all digits; None stays None.

    Raises:
        DomainError: The argument is neither a number nor a word.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise DomainError(f"Expected a number for {name}, got {value!r}.")
    return exactly(value if isinstance(value, int) else float(value))
