"""Colours for curves that differ in the value of a parameter."""

RAMP = ("#440154", "#443A83", "#31688E", "#21918C", "#35B779", "#90C83E", "#D0B500")
"""Colours of rising parameters, dark to bright."""


def ramp(size: int) -> tuple[str, ...]:
    """Return so many colours that are as far apart as the ramp allows.

    Example:
        >>> ramp(3)
        ('#440154', '#21918C', '#D0B500')
    """
    if size == 1:
        return RAMP[:1]
    return tuple(RAMP[round(i * (len(RAMP) - 1) / (size - 1))] for i in range(size))
