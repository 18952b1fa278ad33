"""A sign of life on a terminal while one answer is computed; nothing elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what is being done on standard error, and take it away at the end.

    Args:
        what: What is done, such as `computing allocation-epsilon`.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(f"{what} ...")):
        yield
