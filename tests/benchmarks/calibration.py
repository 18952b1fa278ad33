"""Cost of the noise for a target epsilon, compared with dp-accounting and riskcal; a section of bench.py."""

from collections.abc import Iterator
from typing import Any

from flows.answers.training.noise import Noise, find_noise
from privcore import Method, Point, evaluate, find, find_problem
from privcore.allocation.calibration import smallest_noise
from tests.benchmarks.enclosures import median
from tests.benchmarks.measure import Measured, forget, head, measured, row, verdict
from tests.benchmarks.peer import PYTHON, Peer, PeerError

PRECISION = 1e-4
TARGET = 6.0
LIMIT = 30.0
METHODS = {"allocation-epsilon": "allocation.certified", "poisson-epsilon": "poisson.certified"}
TARGETS = [
    # epsilon, delta, steps
    (1.0, 1e-5, 10**3),
    (1.0, 1e-8, 10**4),
    (8.0, 1e-5, 10**3),
    (0.1, 1e-6, 10**4),
    (3.0, 1e-10, 10**6),
]


def table() -> Iterator[str]:
    """Yield the cost of calibration in units of one evaluation at the noise that it finds."""
    peer = Peer("peer_calibration.py")
    names = ["problem", "epsilon", "delta", "t", "sigma: too small - sufficient", "brackets", "seconds"]
    names += ["evaluations at 1e-4", "at 1e-2", "`smallest_noise`, seconds"]
    yield head([*names, "dp-accounting, PLD 1e-4", "riskcal"])
    units = []
    for problem, name in METHODS.items():
        for epsilon, delta, steps in TARGETS:
            fields: dict[str, Any] = {"steps": steps, "delta": delta}
            if problem == "poisson-epsilon":
                fields["sampling_probability"] = 1.0 / steps
            found = measured(lambda: _searched(problem, name, fields, epsilon), before=forget)  # noqa: B023
            noise: Noise = found.value
            fine, usual = (_one(problem, name, fields, noise.sigma, width) for width in (PRECISION, 1e-2))
            units.append(found.seconds / fine.seconds)
            scheme = problem.removesuffix("-epsilon")
            paper = measured(lambda: _smallest(scheme, epsilon, delta, steps), before=forget)  # noqa: B023
            cells = [problem, f"{epsilon:g}", f"{delta:g}", f"{steps:g}"]
            cells += [f"{noise.short_sigma} - {noise.sigma}", f"{noise.brackets}", f"{found.seconds:.3g}"]
            cells += [f"{units[-1]:.2f}", f"{found.seconds / usual.seconds:.1f}", f"{paper.seconds:.3g}"]
            peers = ("google", "risk") if scheme == "poisson" else ()
            said = [_said(peer, function, fields, epsilon, noise, found) for function in peers]
            yield row([*cells, *(said or ["", ""])])
    peer.close()
    yield ""
    yield verdict(
        f"sigma to {PRECISION:g} in at most the time of {TARGET:g} evaluations with the same precision",
        f"median {median(units):.2f}, largest {max(units):.2f}",
        max(units) <= TARGET,
    )


def _searched(problem: str, name: str, fields: dict[str, Any], epsilon: float) -> Noise:
    methods: list[Method] = [find(name)()]
    return find_noise(find_problem(problem), fields, epsilon, precision=PRECISION, methods=methods)


def _smallest(scheme: str, epsilon: float, delta: float, steps: int) -> object:
    return smallest_noise(scheme, epsilon=epsilon, delta=delta, steps=steps, precision=PRECISION)


def _one(problem: str, name: str, fields: dict[str, Any], sigma: float, tolerance: float) -> Measured:
    """Return the seconds of one bracket of this width at a noise multiplier."""
    method = find(name).from_knobs({"tolerance": tolerance})
    point = Point(problem=find_problem(problem).from_fields(fields | {"sigma": sigma}), method=method)
    return measured(lambda: evaluate(point), before=forget)


def _said(
    peer: Peer, function: str, fields: dict[str, Any], epsilon: float, noise: Noise, ours: Measured
) -> str:
    """Return the noise of a peer with its seconds; noise that is proved to be insufficient is marked."""
    if not PYTHON.exists():
        return "not installed"
    try:
        found = peer.ask(function, LIMIT, fields=fields, epsilon=epsilon, precision=PRECISION)
    except PeerError as error:
        return str(error)
    told = f"{found.value:.6g}; {found.seconds:.2g} s; ratio {found.seconds / ours.seconds:.2g}"
    low = noise.short_sigma is not None and found.value < noise.short_sigma
    return told + ("; **too little noise**" if low else "")
