"""The arguments of functions: the words of the commands, in the spelling of Python, and arrays of them."""

import difflib
import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

from flows.answers.question import SPELLINGS
from flows.spec.words import DEFAULT_STORE
from privcore import PrivsweepError
from storage import Store, open_store

Several = Any
"""A number, or numbers in a list or an array, for which there is an answer each."""
Function = TypeVar("Function", bound=Callable[..., Any])
Sampling = Literal[
    "shuffling",
    "poisson",
    "with-replacement",
    "fixed-size",
    "balls-in-bins",
    "allocation",
    "truncated-poisson",
    "none",
    "unknown",
]
Adjacency = Literal["add-remove", "zero-out", "replace-one", "add", "remove"]


class RunWords(TypedDict, total=False):
    """The words of a training run."""

    sigma: Several
    steps: Several
    delta: Several
    participations: Several
    epochs: Several
    adjacency: Adjacency | str
    sampling: Sampling | str
    sampling_probability: Several
    redraw: Literal["once", "each-epoch"] | str
    largest_batch: Several
    examples: Several
    batch_size: Several
    drop_last: bool
    keep_last: bool
    group: Several
    workers: Several
    max_grad_norm: Several
    run: str | Path | None


MEANING = """
        sigma: Noise multiplier: standard deviation of the noise of a step divided by the clipping norm. Also
            `noise_multiplier`.
        delta: Delta of (epsilon, delta)-differential privacy: P[M(D) in S] <= e^epsilon P[M(D') in S] + delta
            for all events S; in (0, 1). Also `target_delta`.
        sampling: Loader of the training code, required: `shuffling`, `poisson`, `with-replacement`,
            `fixed-size`, `balls-in-bins`, `allocation`, `truncated-poisson`, `none`, or `unknown` for the
            bracket that holds for every sampler of `privsweep.compare`.
        steps: Steps of one epoch; or give `examples` and `batch_size`, which are rounded to the safe side.
        epochs: Number of epochs; 1 by default.
        participations: Steps of an epoch that use an example; 1 by default.
        sampling_probability: Probability that a step uses an example, for Poisson sampling. Also
            `sample_rate`.
        examples: Number of training examples.
        batch_size: Average number of examples in a step.
        drop_last: Whether the last batch of an epoch is dropped unless it is full.
        keep_last: Whether it is used even if it is not full, which is the default.
        adjacency: Neighbouring relation, such as `add-remove`, `zero-out` or `replace-one`.
        redraw: For several epochs: `once` or `each-epoch`.
        largest_batch: Size to which truncated Poisson sampling cuts batches.
        group: Number of examples of one owner, who is protected with all of them; 1 by default.
        run: TOML file of a run of several phases, or its phases in one line of text."""


def of_a_run(*names: str) -> Callable[[Function], Function]:
    """Return the decorator that replaces the argument `**run` of a function by words of a training run.

    Args:
        names: Names of the words that the function takes; without names, all.
    """
    hints = typing.get_type_hints(RunWords)
    chosen = {name: hint for name, hint in hints.items() if name in (names or hints)}

    def declared(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        kind = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in chosen.items()
        ]
        called = in_python(function)
        called.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        if called.__doc__:
            kept = [part for part in re.split(r"(?m)^(?=        \w+: )", MEANING) if _is_about(part, chosen)]
            called.__doc__ = called.__doc__.replace(
                "\n\n    Returns:", f"{''.join(kept).rstrip()}\n\n    Returns:", 1
            )
        return called

    return declared


def _is_about(part: str, names: Mapping[str, Any]) -> bool:
    word = re.match(r"        (\w+): ", part)
    return word is None or word[1] in names


def in_python(function: Function) -> Function:
    """Return a function whose errors have the words of Python: `sample_rate` and never `--sample-rate`."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        signature = inspect.signature(called).parameters
        names = [*signature, *(spelled for spelled, name in SPELLINGS.items() if name in signature)]
        unknown = [name for name in named if name not in names]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in signature.values()):
            close = difflib.get_close_matches(unknown[0], names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{function.__name__}() got an unexpected argument {unknown[0]!r}{hint}")
        for spelled, name in SPELLINGS.items():
            if spelled in named and spelled not in signature:
                if name in named:
                    raise TypeError(f"{function.__name__}() got {name!r} and {spelled!r}, which are the same")
                named[name] = named.pop(spelled)
        for name, value in named.items():
            is_bool = name in signature and signature[name].annotation in (bool, "bool")
            if is_bool and value is not None and type(value).__name__ not in ("bool", "bool_"):
                raise TypeError(f"{function.__name__}() expected True or False for {name}, got {value!r}")
        try:
            return function(*given, **named)
        except PrivsweepError as error:
            error.args = tuple(spelled_in_python(each) for each in error.args)
            raise

    return typing.cast(Function, called)


def spelled_in_python(text: Any) -> Any:
    """Return a text with arguments in place of options, except in commands between backticks."""
    if isinstance(text, list | tuple):
        return [spelled_in_python(each) for each in text]
    if not isinstance(text, str):
        return text
    parts = text.split("`")
    parts[::2] = [re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), part) for part in parts[::2]]
    return "`".join(parts)


def opened_store(store: str | Path, allow_degraded: bool = False) -> Store:
    """Open a store for answers; only the default one may be missing: then the shipped table answers.

    Raises:
        StoreError: A store of another name does not exist, or is not a store.
    """
    return open_store(store, missing_ok=Path(store) == DEFAULT_STORE, degraded=allow_degraded)


def is_several(value: object) -> bool:
    """Return whether an argument has several values: a list, a tuple, an array or a series."""
    return isinstance(value, list | tuple | range) or bool(getattr(value, "shape", ()))
