"""Questions from Python, each with the arguments that the command of the same name has as options."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from flows.answers.ask import LIMIT_BYTES, LIMIT_SECONDS
from flows.answers.ask import ask as ask_methods
from flows.answers.held import answer_to, answered_rows, any_held, tightened
from flows.answers.held import keep as keep_answers
from flows.answers.parse import UNKNOWN
from flows.answers.question import COMPARED, question, typed
from flows.answers.show import estimates_of
from flows.answers.sourced import Sourced, computed
from flows.answers.training.any_sampler import any_sampler, candidates, print_profile, profile_of
from flows.answers.training.compare import problems as compared_problems
from flows.answers.training.noise import Noise
from flows.answers.training.noise_target import noise_for
from flows.answers.training.training_run import with_one_less
from flows.answers.uncovered import uncovered
from flows.spec.words import DEFAULT_STORE, method_from
from privcore import Method, Problem
from privsweep.enclosure import Comparison, Enclosure, Report, broadcast, comparison, enclosure, of_any
from privsweep.words import RunWords, in_python, of_a_run, opened_store

if TYPE_CHECKING:
    from flows.runs.forecast import Schedule
    from flows.runs.plan import Plan

Number = float | int | str
Methods = str | Method | Sequence[str | Method] | None


def _methods(method: Methods) -> list[Method] | None:
    """Return the methods that were named, or None for all."""
    if method is None:
        return None
    each = list(method) if isinstance(method, Iterable) and not isinstance(method, str) else [method]
    return [one if isinstance(one, Method) else method_from(str(one)) for one in each] or None


@of_a_run()
def epsilon(
    *,
    repeats: str | None = None,
    method: Methods = None,
    store: str | Path = DEFAULT_STORE,
    stored_only: bool = False,
    limit_seconds: float = LIMIT_SECONDS,
    allow_degraded: bool = False,
    **run: Unpack[RunWords],
) -> Enclosure:
    """Bound epsilon of one training run from below and from above.

    The answer comes from the store, or from the table that is part of the package, if they have this problem
    with exactly the bounds that would be computed; otherwise it is computed.

    Args:
        repeats: Number of runs, if only the best one is released, as in `--repeats`: `fixed(10)`,
            `geometric(10)`, `poisson(10)`, `binomial(20,0.5)` or `negative-binomial(0,0.01)`; one by default.
        method: Method to use, or several of them; all by default.
        store: Folder or address of a store; only the default one may be missing.
        stored_only: Whether any stored bound is the answer, and nothing is computed.
        limit_seconds: Time after which methods are not started, in seconds.
        allow_degraded: Whether to skip damaged parts of the store, with a warning for each.

    Returns:
        The lower and the upper end, between which epsilon is proved to lie; for arrays of arguments, which
        broadcast like those of numpy, `Enclosures` of the same shape.

    Raises:
        DomainError: An argument is missing, outside its domain, or contradicts another one.
        UncoveredError: Nothing is stored, and `stored_only` is true.
        LimitError: A limit stopped all methods.

    Example:
        >>> epsilon(sigma=1.0, delta=1e-5, sampling="none").upper < 4.3772
        True
        >>> epsilon(sigma=[1.0, 2.0], delta=1e-5, sampling="none").upper.round(3).tolist()
        [4.377, 1.993]
    """
    chosen = _methods(method)
    computing = None if stored_only else partial(computed, methods=chosen, limit_seconds=limit_seconds)
    with opened_store(store, allow_degraded) as opened:

        def one(words: Any) -> Enclosure:
            given = typed(words)
            if given.get("sampling") == UNKNOWN and "run" not in given:
                asked, notes = candidates(given)
                rows = answered_rows(opened, asked, computing)
                return of_any(any_sampler(rows), notes)
            found = question(given)
            answer = answer_to(opened, found.problem, computing, by_methods=chosen is not None)
            less = [] if computing is None or "run" in given else with_one_less(given, computing)
            return enclosure(answer, found.notes + less)

        return cast(Enclosure, broadcast(one, {**run, "repeats": repeats}))


@of_a_run(*(name for name in RunWords.__annotations__ if name != "sigma"))
def noise(  # noqa: PLR0913  the options of the command
    *,
    epsilon: Number | None = None,
    advantage: Number | None = None,
    tpr: Number | None = None,
    fpr: Number | None = None,
    repeats: str | None = None,
    method: Methods = None,
    precision: float = 1e-3,
    store: str | Path = DEFAULT_STORE,
    limit_seconds: float = LIMIT_SECONDS,
    allow_degraded: bool = False,
    **run: Unpack[RunWords],
) -> Noise:
    """Find the least noise multiplier whose epsilon is proved to be at most a target.

    Args:
        epsilon: The target: the largest epsilon that is allowed. Also `target_epsilon`.
        advantage: Another target: the largest advantage of a membership test.
        tpr: Another target: the largest true positive rate of a membership test, with `fpr`.
        fpr: False positive rate of the test of `tpr`.
        repeats: As in `privsweep.epsilon`, for a target of epsilon.
        method: As in `privsweep.epsilon`.
        precision: Relative distance to a noise multiplier that is proved not to suffice.
        store: As in `privsweep.epsilon`; a damaged one is an error, and it changes no answer.
        limit_seconds: As in `privsweep.epsilon`.
        allow_degraded: As in `privsweep.epsilon`.

    Returns:
        `sigma` is proved to suffice, and `short_sigma` is proved not to suffice. If the sampler is `unknown`,
        this holds for every sampler of `privsweep.compare` together, and `worst` names the worst one. For a
        run of several phases, `sigma` is the smallest noise multiplier, and the phases keep their ratios.

    Raises:
        DomainError: An argument is missing, outside its domain, or contradicts another one.
        UncoveredError: No noise multiplier is proved to suffice.
        LimitError: A limit stopped the methods.

    Example:
        >>> noise(epsilon=1.0, delta=1e-5, sampling="none").sigma
        3.7321
    """
    targets = {"epsilon": epsilon, "advantage": advantage, "tpr": tpr, "fpr": fpr}

    def one(words: Any) -> Noise:
        given = {name: words.pop(name) for name in targets if name in words}
        searching, _ = noise_for(
            typed(words), given, precision=precision, methods=_methods(method), limit_seconds=limit_seconds
        )
        return searching()

    with opened_store(store, allow_degraded):
        return cast(Noise, broadcast(one, {**run, **targets, "repeats": repeats}))


@of_a_run()
def solve(
    word: str, *, epsilon: Number, limit_seconds: float = LIMIT_SECONDS, **run: Unpack[RunWords]
) -> Report:
    """Find the largest steps, epochs or batch size whose epsilon is proved to be at most a target.

    For samplers whose epsilon falls in the steps of an epoch, such as allocation, it finds the least steps.

    Args:
        word: `steps`, `epochs` or `batch_size`.
        epsilon: The target: the largest epsilon that is allowed. Also `target_epsilon`.
        limit_seconds: Time after which methods are not started, for each bracket, in seconds.

    Returns:
        The JSON of `privsweep solve`: `value` is proved to suffice, and `value_short`, the next one, is
        proved not to; it is None if nothing is proved about it.

    Raises:
        DomainError: An argument is missing, outside its domain, or contradicts another one.
        UncoveredError: No value is proved to suffice.

    Example:
        >>> found = solve("epochs", epsilon=2.0, sampling="none", sigma=10.0, delta=1e-5)
        >>> found["value"], found["value_short"]
        (25, 26)
    """
    from flows.answers.training.solve import print_solved, solved

    searching, _ = solved(word, run, target=epsilon, limit_seconds=limit_seconds)
    found = searching()
    return Report(found.as_content(), "", partial(print_solved, found))


@of_a_run(*COMPARED)
def compare(
    *,
    store: str | Path = DEFAULT_STORE,
    stored_only: bool = False,
    limit_seconds: float = LIMIT_SECONDS,
    allow_degraded: bool = False,
    **run: Unpack[RunWords],
) -> Comparison:
    """Bound epsilon of one training run under every sampler that its parameters describe.

    Args:
        store: As in `privsweep.epsilon`.
        stored_only: As in `privsweep.epsilon`.
        limit_seconds: Time after which methods are not started, for each sampler, in seconds.
        allow_degraded: As in `privsweep.epsilon`.

    Returns:
        The enclosures by the name of the sampler; `missing` has the reasons of the others.

    Raises:
        DomainError: An argument is missing, outside its domain, or contradicts another one.
    """
    asked, notes = compared_problems(typed(run))
    with opened_store(store, allow_degraded) as opened:
        within = partial(computed, limit_seconds=limit_seconds)
        rows = answered_rows(opened, asked, None if stored_only else within)
    return comparison(rows, notes)


@of_a_run(*(name for name in RunWords.__annotations__ if name != "delta"))
def profile(
    *,
    delta: Number | Sequence[Number] = (),
    epsilon: Number | Sequence[Number] = (),
    fpr: Number | Sequence[Number] = (),
    tpr: Number | Sequence[Number] = (),
    prior: Number | Sequence[Number] = (),
    smallest_fpr: Number | Sequence[Number] = (),
    candidates: Number | Sequence[Number] = (),
    **run: Any,
) -> Report:
    """Return epsilon, delta, rates of membership tests, advantage, accuracy and mu of one training run.

    Args:
        delta: Deltas at which to return epsilon.
        epsilon: Epsilons at which to return delta.
        fpr: False positive rates at which to return the true positive rate.
        tpr: True positive rates at which to return the false positive rate.
        prior: Prior probabilities of membership, for accuracy and precision.
        smallest_fpr: Smallest false positive rates of mu.
        candidates: Numbers of candidates, for the success of the best guess which of them was used.
        run: The words of `privsweep.epsilon`.

    Returns:
        The JSON of `privsweep profile`: `profile` has the numbers with both ends, and `curve` the trade-off
        curve, which `plot` draws. Without numbers, the usual ones are asked.

    Raises:
        DomainError: An argument is missing, outside its domain, or contradicts another one.

    Example:
        >>> profile(sampling="none", sigma=2.0, fpr=0.01)["profile"][0]["quantity"]
        'epsilon'
    """
    asked = {"delta": delta, "epsilon": epsilon, "false_positive_rate": fpr, "true_positive_rate": tpr}
    asked |= {"member_probability": prior, "smallest_false_positive_rate": smallest_fpr}
    asked |= {"candidates": candidates}
    numbers = {
        name: [each] if isinstance(each, str) or not hasattr(each, "__iter__") else list(each)
        for name, each in asked.items()
    }
    computing, _ = profile_of(typed(run), numbers)
    found = computing()

    def plot(file: str | Path) -> None:
        from flows.reports.profile_chart import draw_profile

        draw_profile(found, Path(file))

    return Report(found.as_content(), "profile", partial(print_profile, found, False), plot)


@of_a_run("examples", "batch_size", "epochs", "participations", "sigma", "delta", "adjacency")
def steps(*, limit_seconds: float = LIMIT_SECONDS, **run: Unpack[RunWords]) -> Report:
    """Compute the steps of an epoch from examples and batch size, with the rounding that is safe.

    Args:
        limit_seconds: As in `privsweep.epsilon`.

    Returns:
        The JSON of `privsweep steps`: `roundings` has both roundings, with `epsilon` if `sigma` and `delta`
        are given, and `safe` the safe one for each sampler.

    Raises:
        DomainError: An argument is missing, or outside its domain.

    Example:
        >>> steps(examples=60000, batch_size=256)["safe"]
        {'allocation': 'down', 'poisson': 'up'}
    """
    from flows.answers.training.training_run import contents_of, print_roundings, roundings_of

    sizes, computing, _ = roundings_of(run, limit_seconds=limit_seconds)
    asked = computing()
    return Report(contents_of(sizes, asked), "roundings", partial(print_roundings, sizes, asked, False))


@in_python
def ask(
    problem: str,
    *,
    method: Methods = None,
    limit_seconds: float = LIMIT_SECONDS,
    limit_bytes: float = LIMIT_BYTES,
    **fields: Any,
) -> Enclosure:
    """Bound any problem now, by all methods that apply.

    Args:
        problem: Name of a problem, one of `privsweep.problems()`.
        method: Method to use, or several of them; all by default.
        limit_seconds: Time after which methods are not started, in seconds.
        limit_bytes: Memory above which methods are not started, in bytes.
        fields: Fields of the problem; for training runs, `examples` and `batch_size` may replace the steps.

    Returns:
        The intersection of the proved brackets; its attribute `likely` is the narrower one with a confidence,
        if simulations give one, and `estimates` has numbers that prove nothing. For arrays of fields, which
        broadcast like those of numpy, `Enclosures` of the same shape.

    Raises:
        DomainError: A field is missing or outside its domain.
        UnknownNameError: The problem or a field does not exist.
        LimitError: A limit stopped all methods.

    Example:
        >>> answer = ask("unamplified-epsilon", sigma=1.0, delta=1e-5)
        >>> 4.3771 < answer.lower <= answer.upper < 4.3772
        True
    """
    chosen = _methods(method)

    def one(words: Any) -> Enclosure:
        asked = ask_methods(
            _problem(problem, words), chosen, limit_seconds=limit_seconds, limit_bytes=limit_bytes
        )
        told = f"computed now, {sum(reply.seconds for reply in asked.replies):.2g} s"
        sourced = Sourced(problem=asked.problem, bracket=asked, answer=asked, source="computed", told=told)
        return enclosure(sourced, likely=asked.likely(), estimates=estimates_of(asked))

    return cast(Enclosure, broadcast(one, fields))


def _problem(name: str, fields: Any) -> Problem:
    return question({**typed(fields), "problem": name}).problem


@in_python
def lookup(
    problem: str,
    *,
    store: str | Path = DEFAULT_STORE,
    compute: bool = False,
    keep: bool = False,
    limit_seconds: float = LIMIT_SECONDS,
    allow_degraded: bool = False,
    **fields: Any,
) -> Enclosure:
    """Return the stored bounds that cover a problem, also between the points of a grid.

    Args:
        problem: Name of a problem.
        store: As in `privsweep.epsilon`.
        compute: Whether to compute if nothing is stored, or if the stored bracket is wider than 5 %; the
            answer is then the intersection of both.
        keep: Whether to store the computed bounds.
        limit_seconds: As in `privsweep.epsilon`.
        allow_degraded: As in `privsweep.epsilon`.
        fields: Fields of the problem, as in `privsweep.ask`.

    Returns:
        The stored bracket, with the stored problems that gave its ends in `source`; for arrays of fields,
        `Enclosures`.

    Raises:
        UncoveredError: Nothing is stored, and `compute` is false.
        DomainError: A field is missing or outside its domain.

    Example:
        >>> lookup("unamplified-epsilon", sigma=1.0, delta=1e-5, compute=True).upper < 4.3772
        True
    """
    with opened_store(store, allow_degraded or keep) as opened:

        def one(words: Any) -> Enclosure:
            asked = _problem(problem, words)
            found = any_held(opened, asked)
            if compute:
                found = tightened(asked, found, computing=partial(computed, limit_seconds=limit_seconds))
            if found is None:
                raise uncovered(opened, asked)
            if keep:
                keep_answers(opened, [found])
            return enclosure(found)

        return cast(Enclosure, broadcast(one, fields))


def problems() -> tuple[str, ...]:
    """Return the names of all problems.

    Example:
        >>> "poisson-epsilon" in problems()
        True
    """
    from privcore import PROBLEMS

    return tuple(kind.name for kind in PROBLEMS)


@in_python
def methods(name: str | None = None) -> Report:
    """Return all problems with the methods that bound them, or one problem or method.

    Args:
        name: Name of a problem or of a method; None for a table of all.

    Returns:
        The JSON of `privsweep methods`: `problems`, `methods` and `matrix`, or the description of one.

    Raises:
        UnknownNameError: The name does not exist.

    Example:
        >>> methods("unamplified-epsilon")["asks"]
        'epsilon'
    """
    from flows.answers.catalogue import catalogue, described, show_matrix, show_one

    if name is None:
        return Report(catalogue(), "methods", show_matrix)
    return Report(described(name), "fields", partial(show_one, name, False))


@in_python
def plan(
    sweep: Any,
    store: str | Path = DEFAULT_STORE,
    *,
    method: Methods = None,
    workers: int | None = None,
    max_points: float = 1e6,
    retry: bool = False,
    cluster: str | None = None,
    **fields: Any,
) -> "Plan | Schedule":
    """Estimate the cost of a sweep: points, time, memory and disk. Starts and writes nothing.

    Args:
        sweep: As in `privsweep.run`; or the name of a problem, with its `fields`.
        store: Folder or address of the store.
        method: Methods for a problem; few methods that bound its points by default.
        workers: Number of worker processes; one for each core by default.
        max_points: Number of points above which the sweep is refused.
        retry: Whether to compute stored failures again.
        cluster: Sizes of a cluster on which to simulate the schedule, such as `nodes=200,cores=32`.
        fields: Values of the fields of a problem, each a number, a word, or several of them.

    Returns:
        The plan, with `new` points, `cpu_seconds`, `memory_bytes` and `disk_bytes`; or the schedule.

    Raises:
        PrivsweepError: The sweep contradicts itself, or is too large.

    Example:
        >>> plan("unamplified-epsilon", "no-store", sigma=[1.0, 2.0], delta=1e-5).new
        2
    """
    from flows.runs.forecast import read_cluster, simulate
    from flows.runs.plan import TooLargeError, make_plan, work_of
    from privsweep.sweeps import sweep_of
    from storage import open_store
    from tasks.engine import checked_workers, cores

    asked = sweep_of(sweep, fields, method)
    with open_store(store, missing_ok=True) as opened:
        if cluster is not None:
            described = read_cluster(cluster)
            work = work_of(asked, opened, described.workers, max_points=max_points, retry=retry)
            return simulate(work, described)
        made = make_plan(
            asked, opened, workers=checked_workers(workers) or cores(), max_points=max_points, retry=retry
        )
    if made.refused:
        raise TooLargeError(made.refused)
    return made
