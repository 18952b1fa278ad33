"""Questions from Python: the epsilon of a training run, the noise for an epsilon, samplers compared."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from flows.answers.any_sampler import any_sampler, candidates
from flows.answers.ask import LIMIT_SECONDS
from flows.answers.ask import ask as ask_methods
from flows.answers.compare import problems
from flows.answers.noise import TARGET, Noise, confirmed, find_noise, find_noise_any
from flows.answers.parse import UNKNOWN
from flows.answers.show import estimates_of
from flows.answers.sourced import Sourced, asked_until_tight
from privcore import find_problem
from privcore.params import SIGMA
from privcore.training import from_sizes
from privsweep.enclosure import Comparison, Enclosure, comparison, enclosure, of_any
from privsweep.question import question, text, texts
from privsweep.stored import DEFAULT_STORE, answered, answered_rows, opened_store

Number = float | int


def epsilon(  # noqa: PLR0913  the parameters of a training run
    *,
    sigma: Number,
    delta: Number,
    sampling: str | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    participations: int | None = None,
    sampling_probability: Number | None = None,
    examples: int | None = None,
    batch_size: Number | None = None,
    adjacency: str | None = None,
    redraw: str | None = None,
    largest_batch: int | None = None,
    store: str | Path = DEFAULT_STORE,
    compute: bool = True,
    limit_seconds: float = LIMIT_SECONDS,
) -> Enclosure:
    """Bound epsilon of one training run from below and from above.

    The answer comes from the store, or from the table that is part of the package, if they have this problem
    with exactly the bounds that would be computed; otherwise it is computed.

    Args:
        sigma: Noise multiplier: standard deviation of the noise divided by the clipping norm, in every step.
        delta: Delta of (epsilon, delta)-differential privacy: P[M(D) in S] <= e^epsilon P[M(D') in S] + delta
            for all events S; in (0, 1).
        sampling: Loader of the training code, required: `shuffling`, `poisson`, `with-replacement`,
            `fixed-size`, `balls-in-bins`, `allocation`, `truncated-poisson`, `none`, or `unknown` for the
            bracket that holds for every sampler of `privsweep.compare`.
        steps: Steps of one epoch; or give `examples` and `batch_size`, which are rounded to the safe side.
        epochs: Number of epochs; 1 by default.
        participations: Steps of an epoch that use an example; 1 by default.
        sampling_probability: Probability that a step uses an example, for Poisson sampling.
        examples: Number of training examples.
        batch_size: Average number of examples in a step.
        adjacency: Neighbouring relation, such as `add-remove`, `zero-out` or `replace-one`.
        redraw: For several epochs: `once` or `each-epoch`.
        largest_batch: Size to which truncated Poisson sampling cuts batches.
        store: Folder or address of a store; only the default one may be missing.
        compute: Whether to compute; otherwise any stored bound is the answer.
        limit_seconds: Time after which methods are not started, in seconds.

    Returns:
        The lower and the upper end, between which epsilon is proved to lie.

    Raises:
        DomainError: A parameter is missing, outside its domain, or contradicts another one.
        UncoveredError: Nothing is stored, and `compute` is false.
        LimitError: A limit stopped all methods.

    Example:
        >>> epsilon(sigma=1.0, delta=1e-5, sampling="none").upper < 4.3772
        True
    """
    options: dict[str, object] = {
        "sigma": sigma,
        "delta": delta,
        "steps": steps,
        "epochs": epochs,
        "redraw": redraw,
    }
    options |= {"participations": participations, "adjacency": adjacency, "largest_batch": largest_batch}
    options["sampling_probability"] = sampling_probability
    if sampling == UNKNOWN:
        asked, notes = candidates(texts(options), examples=text(examples), batch_size=text(batch_size))
        return of_any(any_sampler(answered_rows(asked, store, compute, limit_seconds)), notes)
    kind, fields, notes = question(sampling, options, examples, batch_size)
    problem = kind.asked(fields)
    with opened_store(store) as opened:
        return enclosure(answered(opened, problem, compute, limit_seconds), notes)


def noise(  # noqa: PLR0913  the parameters of a training run
    *,
    epsilon: Number,
    delta: Number,
    sampling: str | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    participations: int | None = None,
    sampling_probability: Number | None = None,
    examples: int | None = None,
    batch_size: Number | None = None,
    adjacency: str | None = None,
    redraw: str | None = None,
    largest_batch: int | None = None,
    precision: float = 1e-3,
    limit_seconds: float = LIMIT_SECONDS,
) -> Noise:
    """Find the least noise multiplier whose epsilon is proved to be at most a target.

    Args:
        epsilon: The target: the largest epsilon that is allowed.
        delta: Delta of (epsilon, delta)-differential privacy: P[M(D) in S] <= e^epsilon P[M(D') in S] + delta
            for all events S; in (0, 1).
        sampling: As in `privsweep.epsilon`, like the following arguments.
        steps: Steps of one epoch.
        epochs: Number of epochs.
        participations: Steps of an epoch that use an example.
        sampling_probability: Probability that a step uses an example.
        examples: Number of training examples.
        batch_size: Average number of examples in a step.
        adjacency: Neighbouring relation.
        redraw: For several epochs: `once` or `each-epoch`.
        largest_batch: Size to which truncated Poisson sampling cuts batches.
        precision: Relative distance to a noise multiplier that is proved not to suffice.
        limit_seconds: Time after which methods are not started, in seconds.

    Returns:
        `sigma` is proved to suffice, and `short_sigma` is proved not to suffice. If the sampler is `unknown`,
        this holds for every sampler of `privsweep.compare` together, and `worst` names the worst one.

    Raises:
        DomainError: A parameter is missing, outside its domain, or contradicts another one.
        UncoveredError: No noise multiplier is proved to suffice.
        LimitError: A limit stopped the methods.

    Example:
        >>> noise(epsilon=1.0, delta=1e-5, sampling="none").sigma
        3.7321
    """
    options: dict[str, object] = {
        "delta": delta,
        "steps": steps,
        "epochs": epochs,
        "participations": participations,
    }
    options |= {"adjacency": adjacency, "redraw": redraw, "largest_batch": largest_batch}
    options["sampling_probability"] = sampling_probability
    again = partial(asked_until_tight, limit_seconds=limit_seconds)
    if sampling == UNKNOWN:
        given = texts(options | {"sigma": 1})
        asked, _ = candidates(given, examples=text(examples), batch_size=text(batch_size))
        target = TARGET.check(epsilon)
        return find_noise_any(asked, target, again, precision=precision, limit_seconds=limit_seconds)
    kind, fields, _ = question(sampling, options, examples, batch_size)
    least = find_noise(kind, fields, float(epsilon), precision=precision, limit_seconds=limit_seconds)
    return confirmed(least, again, precision=precision, largest=SIGMA.upper)


def compare(  # noqa: PLR0913  the parameters of a training run
    *,
    sigma: Number,
    delta: Number,
    steps: int | None = None,
    epochs: int | None = None,
    participations: int | None = None,
    examples: int | None = None,
    batch_size: Number | None = None,
    adjacency: str | None = None,
    store: str | Path = DEFAULT_STORE,
    compute: bool = True,
    limit_seconds: float = LIMIT_SECONDS,
) -> Comparison:
    """Bound epsilon of one training run under every sampler that its parameters describe.

    Args:
        sigma: As in `privsweep.epsilon`, like the following arguments.
        delta: Delta of (epsilon, delta)-differential privacy: P[M(D) in S] <= e^epsilon P[M(D') in S] + delta
            for all events S; in (0, 1).
        steps: Steps of one epoch.
        epochs: Number of epochs.
        participations: Steps of an epoch that use an example.
        examples: Number of training examples.
        batch_size: Average number of examples in a step.
        adjacency: Neighbouring relation.
        store: Folder or address of a store; only the default one may be missing.
        compute: Whether to compute; otherwise any stored bound is the answer.
        limit_seconds: Time after which methods are not started, for each sampler, in seconds.

    Returns:
        The enclosures by the name of the sampler; `missing` has the reasons of the others.

    Raises:
        DomainError: A parameter is missing, outside its domain, or contradicts another one.
    """
    options: dict[str, object] = {"sigma": sigma, "delta": delta, "steps": steps, "epochs": epochs}
    options |= {"participations": participations, "adjacency": adjacency}
    asked, notes = problems(texts(options), examples=text(examples), batch_size=text(batch_size))
    return comparison(answered_rows(asked, store, compute, limit_seconds), notes)


def ask(problem: str, *, limit_seconds: float = LIMIT_SECONDS, **fields: Any) -> Enclosure:
    """Bound any problem now, by all methods that apply.

    Args:
        problem: Name of a problem, as `privsweep methods` lists it.
        limit_seconds: Time after which methods are not started, in seconds.
        fields: Fields of the problem; for training runs, `examples` and `batch_size` may replace the steps.

    Returns:
        The intersection of the proved brackets; its attribute `likely` is the narrower one with a confidence,
        if simulations give one, and `estimates` has numbers that prove nothing.

    Raises:
        DomainError: A field is missing or outside its domain.
        UnknownNameError: The problem or a field does not exist.
        LimitError: A limit stopped all methods.

    Example:
        >>> answer = ask("unamplified-epsilon", sigma=1.0, delta=1e-5)
        >>> 4.3771 < answer.lower <= answer.upper < 4.3772
        True
    """
    asked = ask_methods(from_sizes(find_problem(problem), fields), limit_seconds=limit_seconds)
    told = f"computed now, {sum(reply.seconds for reply in asked.replies):.2g} s"
    sourced = Sourced(problem=asked.problem, bracket=asked, answer=asked, source="computed", told=told)
    return replace(enclosure(sourced), likely=asked.likely(), estimates=estimates_of(asked))
