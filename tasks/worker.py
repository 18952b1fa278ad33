"""The worker's side of a batch: checks before the first batch, the child process, and publication."""

import platform
from dataclasses import dataclass
from functools import cache

from storage.place.folder import Folder
from storage.place.located import located, store_with
from tasks.batch import Batch
from tasks.errors import SetupError
from tasks.guard import Guard
from tasks.sources import Code, code
from tasks.work import Done, Job, run_batch

_guard: Guard | None = None  # one for each worker process, since its child outlives a batch


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Requirements that a worker on another machine checks.

    Attributes:
        code: Code of the driver; needed because a node may join after the probe of the cluster.
        token: Token in the driver's store, by which the worker recognises the same store.
    """

    code: Code
    token: str


def run_on_worker(
    batch: Batch, job: Job, store: str, requirements: Requirements | None, *, last: bool = True
) -> Done:
    """Run a batch, with the existing child of this process if there is one.

    Args:
        batch: The points.
        job: Settings for every worker.
        store: Address of the store.
        requirements: Requirements to check, or None on the driver's machine.
        last: As for `run_batch`: false unless the batch has the memory of a node for itself.

    Returns:
        The outcome of the batch, with the part itself if this process has no access to the store.

    Raises:
        SetupError: The code of this machine differs from the driver's.
        StoreError: The part cannot be written.
    """
    global _guard  # noqa: PLW0603  the child belongs to the whole process
    if requirements is not None:
        here = platform.node(), code().digest, code().versions
        if sentence := why_other_code(*here, requirements.code):
            raise SetupError(sentence)
    if _guard is None or _guard.limits != job.limits:
        _guard = Guard(job.limits)
    place = _opened(store, requirements and requirements.token)
    return run_batch(batch, job, _guard, place, last=last)


def why_other_code(node: str, digest: str, versions: dict[str, str], wanted: Code) -> str | None:
    """Return a sentence about the difference between a node's code and the driver's, or None."""
    if different := wanted.difference(versions):
        name, theirs, ours = different
        return (
            f"Node {node} of the Ray cluster has {name} {theirs} but this machine has {ours}, which may "
            "change results: install the same requirements.lock on both."
        )
    if digest != wanted.digest:
        return f"Node {node} of the Ray cluster has different code of privsweep than this machine."
    return None


@cache
def _opened(store: str, token: str | None) -> Folder | None:
    """Return the store, or None if this process has no access to it; determined once for each run."""
    return located(store) if token is None else store_with(store, token)
