"""The least noise for a target epsilon, on the safe side, with a proof that less noise does not suffice."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.ask import CONFLICT, LIMIT_BYTES, LIMIT_SECONDS, Asked, UncoveredError, ask
from flows.printing import exactly, html_table, rounded_down, rounded_up
from privcore import Direction, LimitError, Method, PrivsweepError, Problem, Status, answering
from privcore.numerics.bracket_search import BracketSearch
from privcore.parameter import Real
from privcore.params import EPSILON

PRECISION = Real(
    name="precision",
    symbol=r"\rho",
    lower=1e-9,
    upper=1.0,
    typical=(1e-3,),
    meaning="Relative distance between a noise multiplier that suffices and a smaller value that does not",
)
TARGET = Real(
    name="epsilon",
    symbol=EPSILON.symbol,
    unit=EPSILON.unit,
    lower=0.0,
    upper=EPSILON.upper,
    lower_open=True,
    typical=(0.1, 1.0, 8.0),
    meaning="Largest epsilon that is allowed",
)


Look = Callable[[float, float], Asked]
"""Function that brackets epsilon at a sigma, with about the given relative width."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """A noise multiplier proved to suffice, and a smaller noise multiplier proved not to suffice.

    Attributes:
        target: The target epsilon.
        enough: The bracket at the returned sigma; its upper end is at most the target.
        short: The bracket at a smaller sigma whose lower end exceeds the target. None if even the smallest
            sigma of the domain suffices, or if no method proves that less noise does not suffice.
        brackets: Number of brackets that the search computed.
        least: The bracket at a smaller sigma that suffices, too, but only by a bracket narrower than that of
            `privsweep epsilon`; None if there is none.
    """

    target: float
    enough: Asked
    short: Asked | None
    brackets: int
    least: Asked | None = None

    def __post_init__(self) -> None:
        """Check the claim once more, from the brackets alone."""
        enough, short = self.enough, self.short
        if not (enough.ok and enough.confidence == 1.0 and enough.upper <= self.target):
            raise PrivsweepError(f"The search ended on the wrong side: epsilon may be {enough.upper!r}.")
        if short is not None and not short.lower > self.target:
            raise PrivsweepError(f"The search ended too early: epsilon may be {short.lower!r}.")
        if short is not None and not sigma_of(short) < self.sigma:
            raise PrivsweepError(
                f"Methods contradict one another: sigma={self.sigma!r} suffices, "
                f"but {sigma_of(short)!r} does not, though it is more noise."
            )

    @property
    def sigma(self) -> float:
        """The noise multiplier that suffices."""
        return sigma_of(self.enough)

    @property
    def short_sigma(self) -> float | None:
        """The noise multiplier that does not suffice, or None if it is unknown."""
        return None if self.short is None else sigma_of(self.short)

    @property
    def gap(self) -> float:
        """Relative distance to the noise multiplier that does not suffice; infinite if it is unknown."""
        return math.inf if self.short is None else self.sigma / sigma_of(self.short) - 1.0

    @property
    def worst(self) -> str:
        """The sampler with the largest epsilon at this noise, if the sampler is unknown; otherwise empty."""
        return ""

    def _repr_html_(self) -> str:
        """Return both noise multipliers as a table, for a notebook."""
        rows = [
            (
                exactly(self.sigma),
                "suffices",
                f"at most {rounded_up(self.enough.upper)}",
                self.enough.upper_by,
            )
        ]
        if self.short is not None:
            low = f"at least {rounded_down(self.short.lower)}"
            rows.append((exactly(self.short_sigma), "does not suffice", low, self.short.lower_by))
        return html_table(("sigma", "", "epsilon", "method"), rows, self._title())

    def _title(self) -> str:
        return f"epsilon at most {exactly(self.target)}: {self.enough.problem.name}"

    def as_content(self) -> dict[str, Any]:
        """Return the noise multipliers and their proofs for JSON."""
        fields = self.enough.problem.as_fields()
        return {
            "problem": self.enough.problem.name,
            "fields": fields,
            "epsilon": self.target,
            "sigma": self.sigma,
            "lower": self.enough.lower,
            "upper": self.enough.upper,
            "sigma_short": self.short_sigma,
            "lower_short": None if self.short is None else self.short.lower,
            "sigma_least": None if self.least is None else sigma_of(self.least),
            "upper_least": None if self.least is None else self.least.upper,
            "gap": self.gap,
            "status": self.enough.status,
            "adjacency": fields.get("adjacency"),
            "method": self.enough.upper_by,
            "lower_method": None if self.short is None else self.short.lower_by,
            "source": "computed",
            "brackets": self.brackets,
        }


def sigma_of(asked: Asked) -> float:
    """Return the noise multiplier of the problem."""
    return float(asked.problem.as_fields()["sigma"])


def least_noise(look: Look, target: float, precision: float, domain: tuple[float, float]) -> Noise:
    """Search for the sigma at which epsilon falls below a target, in brackets.

    Args:
        look: Function that computes a bracket.
        target: Largest epsilon that is allowed.
        precision: Relative distance at which two sigmas count as neighbours.
        domain: Least and largest sigma.

    Raises:
        UncoveredError: No sigma of the domain is proved to suffice.
        LimitError: The same, because a limit stopped the methods.
        PrivsweepError: Methods contradict one another.
    """
    trials: dict[tuple[float, float], Asked] = {}

    def bracket(sigma: float, tolerance: float) -> tuple[float, float]:
        asked = trials[sigma, tolerance] = look(sigma, tolerance)
        if asked.status == CONFLICT:
            raise PrivsweepError(asked.detail)
        return (asked.lower, asked.upper) if asked.ok and asked.confidence == 1.0 else (0.0, math.inf)

    enough, short = BracketSearch(look=bracket, target=target, precision=precision, domain=domain).run()
    if enough is None:
        last = max(trials.values(), key=sigma_of)
        still = f"at sigma={sigma_of(last):.6g} epsilon may still be {last.upper!r}"
        kind = LimitError if last.status in {Status.TIMEOUT, Status.OUT_OF_MEMORY} else UncoveredError
        where = "in [{:.6g}, {:.6g}]".format(*domain)
        reason = (last.detail or still).rstrip(".")
        raise kind(f"No sigma {where} is proved to reach epsilon={target!r}: {reason}.")
    return Noise(
        target=target,
        enough=trials[enough.at, enough.tolerance],
        short=None if short is None else trials[short.at, short.tolerance],
        brackets=len(trials),
    )


def find_noise(
    kind: type[Problem],
    fields: Mapping[str, Any],
    target: float,
    *,
    precision: float = 1e-3,
    methods: Sequence[Method] | None = None,
    limit_seconds: float = LIMIT_SECONDS,
    limit_bytes: float = LIMIT_BYTES,
) -> Noise:
    """Return the least sigma, up to a relative precision, whose epsilon is proved to be at most the target.

    Args:
        kind: Class of problems about epsilon, if epsilon is proved to fall in the field sigma.
        fields: All fields of the problem except sigma.
        target: Largest epsilon that is allowed, in (0, 10000].
        precision: Relative distance to a sigma that is proved not to suffice; in [1e-9, 1]. The methods may
            not reach it; `Noise.gap` is the distance that they reached.
        methods: Methods to use; None means all that give both ends.
        limit_seconds: As in `ask`, for one bracket.
        limit_bytes: As in `ask`.

    Returns:
        Both noise multipliers with their brackets. They have few digits and print without rounding.

    Raises:
        DomainError: The target, the precision or a field is outside its domain.
        UncoveredError: No sigma of the domain reaches the target.
        LimitError: A limit stopped the methods.

    Example:
        >>> from privcore import find_problem
        >>> noise = find_noise(find_problem("unamplified-epsilon"), {"delta": 1e-5}, 1.0)
        >>> noise.sigma, noise.enough.upper <= 1.0 < noise.short.lower
        (3.7321, True)
    """
    target = TARGET.check(target)
    precision = PRECISION.check(precision)
    chosen = usual_methods(kind) if methods is None else list(methods)

    def look(sigma: float, tolerance: float) -> Asked:
        problem = kind.from_fields({**fields, "sigma": sigma})
        tuned = [_tuned(method, tolerance) for method in chosen]
        return ask(
            problem,
            tuned,
            limit_seconds=limit_seconds,
            limit_bytes=limit_bytes,
            until=lambda asked: asked.upper <= target or asked.lower > target,
        )

    domain = kind.parameters["sigma"]
    assert isinstance(domain, Real)
    return least_noise(look, target, precision, (domain.lower, domain.upper))


def usual_methods(kind: type[Problem]) -> list[Method]:
    """Return the methods that give both ends; without any, all methods for this kind of problem."""
    usual = [method() for method in answering(kind)]
    return [method for method in usual if method.direction is Direction.ENCLOSURE] or usual


def _tuned(method: Method, tolerance: float) -> Method:
    """Return the method with this tolerance, if it has this option."""
    if "tolerance" not in method.knobs:
        return method
    return method.from_knobs({**method.identity(), "tolerance": tolerance})
