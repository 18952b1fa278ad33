"""Number of connections of the server, so that its open files stay below the limit of the system."""

import resource

from privcore import DomainError

CONNECTIONS = 500
"""Connections at once, idle or busy; above, a request gets the status 503."""
OWN = 100
"""Open files of the server itself, with the process that computes."""
_LEAST = 10
"""Connections that a browser may open at once."""
FILES = OWN + 3 * CONNECTIONS
"""Open files that the server asks the system for."""


def connections() -> int:
    """Raise the limit of open files, and return the number of connections that can be served at once.

    A connection is an open file, and a busy one reads a file of the page. As many connections again may wait
    for the status 503, or be accepted before the server looks at them; see `Impatient`. Without this limit, a
    system that has no file left makes the event loop print errors without end.

    Returns:
        At most `CONNECTIONS`; fewer if the hard limit of open files is below `FILES`.

    Raises:
        DomainError: The hard limit leaves too few connections for a browser.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    fits = CONNECTIONS if soft == resource.RLIM_INFINITY else (soft - OWN) // 3
    if fits < _LEAST:
        least = OWN + 3 * _LEAST
        raise DomainError(f"Expected a limit of at least {least} open files (`ulimit -n`), got {soft}.")
    return min(CONNECTIONS, fits)
