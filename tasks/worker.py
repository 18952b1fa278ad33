"""A worker's side of a batch: what it checks before its first one, its child, and who publishes the part."""

import platform
from dataclasses import dataclass
from functools import cache

from storage.folder import Folder
from storage.located import located
from storage.shared_store_token import store_with
from tasks.batch import Batch
from tasks.errors import SetupError
from tasks.guard import Guard
from tasks.sources import Code, code
from tasks.work import Done, Job, run_batch

_guard: Guard | None = None  # one a worker process: its child outlives a batch


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """What a worker on another machine has to find there.

    Attributes:
        code: The driver's code; a node may have joined after the others were looked at.
        token: Stands in the store, if it is the same store.
    """

    code: Code
    token: str


def run_on_worker(batch: Batch, job: Job, store: str, requirements: Requirements | None) -> Done:
    """Run a batch, with the child that this process already has, if it has one.

    Args:
        batch: The points.
        job: What every worker has to know.
        store: Address of the store.
        requirements: What to check, or None on the machine that the driver runs on.

    Returns:
        What became of it, with the part itself where this process does not see the store.

    Raises:
        SetupError: The code here is not the driver's.
        StoreError: The part cannot be written.
    """
    global _guard  # noqa: PLW0603  a process-wide child is the point
    if requirements is not None:
        here = platform.node(), code().digest, code().versions
        if sentence := why_other_code(*here, requirements.code):
            raise SetupError(sentence)
    if _guard is None or _guard.limits != job.limits:
        _guard = Guard(job.limits)
    return run_batch(batch, job, _guard, _opened(store, requirements and requirements.token))


def why_other_code(node: str, digest: str, versions: dict[str, str], wanted: Code) -> str | None:
    """Return a sentence where a node would not compute what the driver would, None where it would."""
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
    """Return the store, or None if this process does not see it; looked at once a run."""
    return located(store) if token is None else store_with(store, token)
