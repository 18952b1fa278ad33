"""The functions of `scipy.special`, which is imported when one of them is first called.

Importing it takes as long as a whole lookup may, and a lookup calls none. Written `special.ndtr(x)`: a name
that is imported from here is looked up at once, and scipy with it.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # what is asked of every module
        raise AttributeError(name)
    import scipy.special

    function = globals()[name] = getattr(scipy.special, name)  # found without us from now on
    return function
