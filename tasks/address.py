"""The address of a Ray cluster: whether anybody listens there, since Ray itself would try for minutes."""

import os
import socket
from urllib.parse import urlsplit

SECONDS = 5.0  # what a cluster that is up gets to accept a connection


def named_cluster() -> str | None:
    """Return the address of the cluster that RAY_ADDRESS names, None where Ray has to be started here."""
    address = os.environ.get("RAY_ADDRESS", "")
    return None if address in ("", "local") else address


def why_unreachable(address: str) -> str | None:
    """Return why there can be no cluster at an address, None if somebody listens there or only Ray can tell.

    Args:
        address: What RAY_ADDRESS may hold: `host:port`, `ray://host:port`, or `auto`, which is left to Ray.

    Example:
        >>> why_unreachable("here")
        'no port'
    """
    if address == "auto":
        return None
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return "no valid port"
    if not host or not port:
        return "no host" if not host else "no port"
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except (OSError, UnicodeError) as error:
        return (isinstance(error, OSError) and error.strerror) or "no answer"
    return None
