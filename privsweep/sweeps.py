"""Sweeps and accountants from Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.printing import exactly
from flows.runs.progress import Progress
from flows.runs.run import RunReport
from flows.runs.run import run as run_sweep
from flows.spec.sweep import Sweep, from_spec
from flows.spec.typed import named_or_typed
from privcore import DomainError
from privsweep.words import in_python, is_several
from storage import open_store
from tasks.engine import Engine, checked_workers

if TYPE_CHECKING:
    from privcore.accountant import PrivsweepAccountant


@in_python
def run(  # noqa: PLR0913  the options of the command
    sweep: str | Path | Mapping[str, Any],
    store: str | Path = "store",
    *,
    method: Any = None,
    engine: str = "auto",
    workers: int | None = None,
    max_points: float = 1e6,
    retry: bool = False,
    progress: bool = True,
    ray_address: str | None = None,
    **fields: Any,
) -> RunReport:
    """Compute the points of a sweep that are not stored yet.

    Args:
        sweep: Name of an embedded sweep, path of a TOML file, or the content of such a file as a mapping; or
            the name of a problem, with its `fields`.
        store: Folder or address of the store; it is created if it does not exist.
        method: Methods for a problem; few methods that bound its points by default.
        engine: `auto`, `ray` (parallel, needs `privsweep[sweep]`) or `serial` (in this process).
        workers: Number of worker processes; one for each core by default.
        max_points: Number of points above which the sweep is refused.
        retry: Whether to compute stored failures again.
        progress: Whether to show the progress on standard error.
        ray_address: A Ray cluster to compute on.
        fields: Values of the fields of a problem, each a number, a word, or several of them.

    Returns:
        The report, with the number of failed points.

    Raises:
        PrivsweepError: The sweep contradicts itself, the store cannot be used, or an engine does not work.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> grid = {"problem": "unamplified-epsilon", "methods": ["unamplified.exact"]}
        >>> grid["product"] = {"sigma": [1.0, 2.0], "delta": 1e-5}
        >>> with TemporaryDirectory() as folder:
        ...     run({"name": "two", "grid": [grid]}, f"{folder}/store", progress=False).computed
        2
    """
    chosen = Engine(name=engine, workers=checked_workers(workers), address=ray_address)
    asked = sweep_of(sweep, fields, method)
    place = store if ":" in str(store) else Path(store).absolute()
    with open_store(place, missing_ok=True) as opened, Progress() as shown:
        return run_sweep(
            asked,
            opened,
            engine=chosen,
            max_points=max_points,
            retry=retry,
            watch=shown if progress else lambda _pace, _done: None,
        )


def sweep_of(sweep: str | Path | Mapping[str, Any], fields: Mapping[str, Any], method: Any) -> Sweep:
    """Return the sweep of a mapping, a file or a name, or of a problem with values of its fields."""
    if isinstance(sweep, Mapping):
        return from_spec(sweep, "the mapping")
    words = [
        f"{name}={','.join(map(exactly, listed if is_several(listed) else [listed]))}"
        for name, listed in fields.items()
    ]
    names = [method] if isinstance(method, str) else list(method or [])
    return named_or_typed(str(sweep), words, names)


def accountant(adjacency: str = "add-remove", *, tolerance: float = 2e-3) -> "PrivsweepAccountant":
    """Return an accountant for dp-accounting, jax_privacy and Opacus, with both ends of epsilon and delta.

    Args:
        adjacency: Neighbouring relation: `add-remove`, `zero-out` or `replace-one`.
        tolerance: Relative width of intervals of epsilon.

    Raises:
        DomainError: The relation is unknown.

    Example:
        >>> import dp_accounting
        >>> event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
        >>> lower, upper = accountant().compose(event, 1000).get_epsilon_interval(1e-5)
        >>> round(lower, 2), round(upper, 2)
        (1.83, 1.83)
    """
    from dp_accounting import NeighboringRelation

    from privcore.accountant import PrivsweepAccountant, Relation

    relations = {relation.short: NeighboringRelation[relation.value] for relation in Relation}
    if adjacency not in relations:
        raise DomainError(f"Expected adjacency in {{{', '.join(relations)}}}, got {adjacency!r}.")
    return PrivsweepAccountant(relations[adjacency], tolerance=tolerance)
