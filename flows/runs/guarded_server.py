"""Prefect's server for one run, which answers only to requests for the loopback address.

A page in a browser can have its own name point to 127.0.0.1 (DNS rebinding). Its requests then reach every
server there, but they name the host of the page.
"""

from fastapi.middleware.trustedhost import TrustedHostMiddleware
from prefect.server.api.server import create_app

HOST = "127.0.0.1"


def app() -> TrustedHostMiddleware:
    """Return the server as an ASGI application, which refuses requests that name another host.

    The check wraps Prefect's application, because Prefect's services call that application inside their
    process, under a host name of their own.
    """
    return TrustedHostMiddleware(create_app(), allowed_hosts=[HOST], www_redirect=False)
