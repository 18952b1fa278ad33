"""The address of a Ray cluster, and a quick check that it is reachable: Ray itself tries for minutes."""

import os
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from privcore.errors import DomainError
from tasks.errors import EngineError

SECONDS = 5.0  # time for a cluster to accept a connection
VARIABLE = "RAY_ADDRESS"
OPTION = "--ray-address"


@dataclass(frozen=True)
class Address:
    """The address of a cluster, and the option or variable that gave it."""

    text: str
    source: str

    def __str__(self) -> str:
        """Return the address as it was given: `RAY_ADDRESS=host:port` or `--ray-address host:port`."""
        return f"{self.source}{'=' if self.source == VARIABLE else ' '}{self.text}"


def named_cluster(option: str | None = None) -> Address | None:
    """Return the address of the named cluster, or None if Ray is to be started on this machine.

    Args:
        option: Address from the caller, which overrides RAY_ADDRESS; `local` means this machine.
    """
    address = Address(option, OPTION) if option else Address(os.environ.get(VARIABLE, ""), VARIABLE)
    return None if address.text in ("", "local") else address


def checked(address: Address) -> Address:
    """Return the address if it accepts connections.

    Raises:
        DomainError: The address is invalid.
        EngineError: The address does not accept connections.
    """
    try:
        reason = why_unreachable(address.text)
    except DomainError as error:
        raise DomainError(f"Expected host:port of a Ray cluster, got {address}: {error}.") from error
    if reason:
        raise EngineError(f"Cannot reach a Ray cluster at {address}: {reason}.")
    return address


def why_unreachable(address: str) -> str | None:
    """Return the reason why an address is unreachable, or None if it accepts connections.

    Args:
        address: `host:port`, or `auto`, which is left to Ray and gives None.

    Raises:
        DomainError: The address is invalid.

    Example:
        >>> why_unreachable("here")
        Traceback (most recent call last):
        privcore.errors.DomainError: the port is missing
    """
    if address == "auto":
        return None
    if address.startswith("ray://"):
        raise DomainError(
            "it is an address of Ray Client; run privsweep on a node of the cluster and give its host:port"
        )
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise DomainError("the port is invalid") from None
    if not host or not port:
        raise DomainError("the port is missing" if host else "the host is missing")
    return why_refused(host, port)


def why_refused(host: str, port: int) -> str | None:
    """Return the reason why a port refuses connections, or None if it accepts them."""
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except (OSError, UnicodeError) as error:
        return (isinstance(error, OSError) and error.strerror) or "no answer"
    return None
