"""Number of connections of the server, so that its open files stay below the limit of the system."""

import resource

CONNECTIONS = 500
"""Connections at once, idle or busy; above, a request gets the status 503."""
OWN = 100
"""Open files of the server itself, with the process that computes."""
FILES = OWN + 3 * CONNECTIONS
"""Open files that the server asks the system for."""


def connections() -> int:
    """Raise the limit of open files, and return the number of connections that can be served at once.

    A connection is an open file, and a busy one reads a file of the page. As many connections again may wait
    for the status 503, or be accepted before the server looks at them; see `Impatient`. Without this limit, a
    system that has no file left makes the event loop print errors without end.

    Returns:
        At most `CONNECTIONS`; fewer if the hard limit of open files is below `FILES`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    fits = CONNECTIONS if soft == resource.RLIM_INFINITY else (soft - OWN) // 3
    return max(1, min(CONNECTIONS, fits))
