"""Packages that only some commands need, and the extra of this package that installs them.

pandas and polars are in no extra: users who ask for their frames have them, in versions of their own.
"""

from importlib.util import find_spec

from privcore.errors import PrivsweepError

_EXTRAS = {"matplotlib": "report", "prefect": "sweep", "ray": "sweep", "uvicorn": "page"}


class MissingPackageError(PrivsweepError):
    """A command needs a package that is not installed; the sentence says how to install it."""


def installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return find_spec(package) is not None


def require(package: str, user: str) -> None:
    """Check that a package is installed.

    Args:
        package: Name of the package.
        user: The command or option that needs it, as the subject of a sentence.

    Raises:
        MissingPackageError: The package is not installed.
    """
    if not installed(package):
        command = f"'privsweep[{_EXTRAS[package]}]'" if package in _EXTRAS else package
        raise MissingPackageError(f"{user} needs the package {package}: pip install {command}.")
