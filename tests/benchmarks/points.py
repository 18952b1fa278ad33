"""Points of random allocation at which we and the peers are measured, and Poisson sampling at rate k/t."""

from typing import Any

KNOWN = [
    # sigma, t, k, epochs, delta
    (0.5, 10**3, 1, 1, 1e-5),
    (0.5, 10**4, 1, 1, 1e-8),
    (0.5, 10**5, 1, 1, 1e-5),
    (0.5, 10**6, 1, 1, 1e-10),
    (0.8, 10**3, 1, 10, 1e-5),
    (0.8, 10**4, 1, 10, 1e-5),
    (0.8, 10**4, 10, 1, 1e-8),
    (0.8, 10**5, 5, 10, 1e-10),
    (1.0, 10**2, 1, 1, 1e-5),
    (1.0, 10**3, 1, 1, 1e-5),
    (1.0, 10**4, 1, 1, 1e-5),
    (1.0, 10**4, 1, 1, 1e-10),
    (1.0, 10**6, 1, 1, 1e-5),
    (1.0, 10**4, 5, 1, 1e-5),
    (1.0, 10**3, 1, 10, 1e-5),
    (1.0, 10**3, 1, 100, 1e-5),
    (1.0, 10**6, 10, 1, 1e-8),
    (2.0, 10**2, 1, 1, 1e-5),
    (2.0, 10**3, 10, 1, 1e-5),
    (2.0, 10**4, 100, 1, 1e-8),
    (2.0, 10**5, 1, 10, 1e-8),
    (5.0, 10**2, 1, 1, 1e-5),
    (5.0, 10**3, 100, 1, 1e-5),
    (5.0, 10**3, 1, 100, 1e-8),
    (10.0, 10**2, 10, 10, 1e-10),
    (10.0, 10**6, 100, 1, 1e-10),
]
"""Points 1 to 26, for which the targets are stated."""
EDGES = [
    # few steps, and many
    (1.0, 1, 1, 1, 1e-5),
    (1.0, 2, 1, 1, 1e-5),
    (1.0, 3, 1, 1, 1e-5),
    (1.0, 10**8, 1, 1, 1e-5),
    (0.5, 10**8, 1, 1, 1e-10),
    # little noise, and much
    (0.15, 10**3, 1, 1, 1e-5),
    (0.15, 10**6, 1, 1, 1e-8),
    (0.3, 10**3, 1, 1, 1e-4),
    (50.0, 10**2, 1, 1, 1e-5),
    (50.0, 10**6, 1, 1, 1e-10),
    # small deltas, and large ones: at the second epsilon is 0
    (1.0, 10**3, 1, 1, 1e-15),
    (1.0, 10**3, 1, 1, 0.1),
    (0.5, 10, 1, 1, 0.1),
    # many participations: blocks of one and two, and of unequal size
    (5.0, 10, 10, 1, 1e-5),
    (5.0, 10, 9, 1, 1e-5),
    (5.0, 10, 5, 1, 1e-5),
    (20.0, 10**3, 500, 1, 1e-5),
    (30.0, 10**3, 999, 1, 1e-5),
    (1.0, 3, 2, 1, 1e-8),
    (0.7, 7, 3, 2, 1e-6),
    # a thousand epochs
    (5.0, 10**2, 1, 10**3, 1e-8),
    (1.0, 10**4, 1, 10**3, 1e-5),
    (2.0, 10**6, 1, 1, 1e-10),
]
ONE_WAY = [
    (1.0, 10**3, 1, 1, 1e-5, "add"),
    (1.0, 10**3, 1, 1, 1e-5, "remove"),
    (0.5, 10**3, 1, 1, 1e-5, "add"),
    (0.5, 10**6, 1, 1, 1e-10, "add"),
    (2.0, 10**4, 100, 1, 1e-8, "add"),
    (5.0, 10**3, 100, 1, 1e-5, "add"),
    (2.0, 10**3, 10, 1, 1e-5, "add"),
    (2.0, 10**3, 10, 1, 1e-5, "remove"),
]
NAMES = ("sigma", "steps", "participations", "epochs", "delta", "adjacency")


def allocation_points() -> list[dict[str, Any]]:
    """Return the fields of all points, first of the known points."""
    both = [(*point, "add-remove") for point in KNOWN + EDGES]
    return [dict(zip(NAMES, point, strict=True)) for point in both + ONE_WAY]


def poisson_points() -> list[dict[str, Any]]:
    """Return the fields of Poisson sampling with rate k/t, the same number of steps, and both directions."""
    names = ("sigma", "steps", "epochs", "delta", "adjacency", "sampling_probability")
    return [
        dict(zip(names, (sigma, steps, epochs, delta, "add-remove", chosen / steps), strict=True))
        for sigma, steps, chosen, epochs, delta in KNOWN + EDGES
    ]


def listed(fields: dict[str, Any]) -> list[str]:
    """Return the columns that identify the point of a row."""
    return [x if isinstance(x, str) else f"{x:g}" for x in fields.values()]
