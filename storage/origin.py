"""The origin of an answer: commit of the code, versions of packages, and machine."""

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

BUILT = "built.json"
"""File of this package, in a wheel or sdist, with the commit that it was built from: `deploy/built.py`."""

_PACKAGES = ("privsweep", "numpy", "scipy", "numba", "dp-accounting", "jax", "optax", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The origin of an answer.

    Attributes:
        git_commit: Commit of the checkout, or that the installed package was built from; or `unknown`.
        git_dirty: Whether the code differed from that commit; None for an installed package, whose files
            nothing compares with the commit.
        versions: Versions of the packages that matter, as JSON.
        host: Machine that computed it.
    """

    git_commit: str
    git_dirty: bool | None
    versions: str
    host: str


@cache
def provenance() -> Provenance:
    """Return commit, package versions and host of this process, determined once."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    commit, dirty = _commit_of(Path(__file__).parent)
    return Provenance(
        git_commit=commit,
        git_dirty=dirty,
        versions=json.dumps(versions, sort_keys=True, separators=(",", ":")),
        host=platform.node() or "unknown",
    )


def commit_text(commit: str, dirty: bool | None) -> str:
    """Return a commit in words that claim nothing about files that were not compared with it.

    Example:
        >>> commit_text("c0ffee", False), commit_text("c0ffee", True), commit_text("c0ffee", None)
        ('c0ffee', 'c0ffee, with changes', 'built from c0ffee')
    """
    if dirty is None and not commit.endswith("unknown"):
        return f"built from {commit}"
    return f"{commit}, with changes" if dirty else commit


def _commit_of(package: Path) -> tuple[str, bool | None]:
    """Return the commit of the code, and whether the code differs from it, or None if that is unknown."""
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        # Installed outside of its own repository; a container image names its commit in the environment.
        file = package / BUILT
        built = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        commit = os.environ.get("PRIVSWEEP_COMMIT") or built.get("commit", "unknown")
        return commit, True if built.get("dirty") else None
    commit = _git(package, "rev-parse", "HEAD")
    changes = _git(package.parent, "status", "--porcelain", "--", "privcore", "storage", "tasks", "flows")
    return (commit or "unknown"), bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if it fails or git is missing."""
    # A hook's GIT_DIR would point elsewhere; the optional lock would disturb a commit that is in progress.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        "GIT_OPTIONAL_LOCKS": "0"
    }
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
