"""Ports for servers of our own on this machine."""

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""Ports below those that Linux gives to connections, so that none of them is in the way."""


def free_port() -> int:
    """Return a port on which nothing listens now, and which no connection gets by chance."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            port = random.choice(PORTS)
            probe.bind(("", port))
            return port
