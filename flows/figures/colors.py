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


def between(size: int) -> tuple[str, ...]:
    """Return so many different colours along the ramp, mixed where it has too few.

    Example:
        >>> between(3) == ramp(3), len(set(between(12)))
        (True, 12)
    """
    if size == 1:
        return RAMP[:1]
    return tuple(_mixed(i * (len(RAMP) - 1) / (size - 1)) for i in range(size))


def _mixed(place: float) -> str:
    """Return the colour at a place of the ramp, which is a mixture where there is none."""
    k = min(int(place), len(RAMP) - 2)
    pairs = ((int(RAMP[k][i : i + 2], 16), int(RAMP[k + 1][i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (place - k) * (b - a)):02X}" for a, b in pairs)
