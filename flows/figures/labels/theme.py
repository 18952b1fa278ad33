"""Priors of the columns, and names and colours of the mechanisms, for all figures on labels."""

from collections.abc import Mapping
from types import MappingProxyType

PRIORS: Mapping[str, str] = MappingProxyType(
    {
        "uniform": "Uniform",
        "beta(2,30)": "Beta(2, 30)",
        "logit-normal(0.2132,2.2453)": "Higgs-like (stand-in)",
        "logit-normal(-3.661,1.1815)": "KDD-like (stand-in)",
    }
)
"""Titles of columns by prior; the last two are the distributions of eta in stand-ins for real data sets."""

DATA: Mapping[str, str] = MappingProxyType(
    {"higgs-like": "logit-normal(0.2132,2.2453)", "kdd-like": "logit-normal(-3.661,1.1815)"}
)
"""Priors of the stand-ins."""

NAMES: Mapping[str, str] = MappingProxyType(
    {"rr": "RR", "llp": "LLP", "llp-geometric": "LLP+Geom", "llp-laplace": "LLP+Lap"}
)
COLORS: Mapping[str, str] = MappingProxyType(
    {"rr": "#6E6E6E", "llp": "#0072B2", "llp-geometric": "#E69F00", "llp-laplace": "#009E73"}
)
MARKERS: Mapping[str, str] = MappingProxyType(
    {"rr": "o", "llp": "s", "llp-geometric": "D", "llp-laplace": "^"}
)


def power(value: float) -> str:
    r"""Return a power of two as TeX, and other numbers as they are.

    Example:
        >>> power(0.0625), power(8), power(0.3)
        ('2^{-4}', '8', '0.3')
    """
    mantissa, exponent = (float(value).hex().split("p")[0], int(float(value).hex().split("p")[1]))
    return f"2^{{{exponent}}}" if mantissa == "0x1.0000000000000" and exponent < -2 else f"{value:g}"
