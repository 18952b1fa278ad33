"""The least noise for a target epsilon, on the safe side, with a proof that less noise does not suffice.

The search for the least noise ends with narrow brackets. The command `privsweep epsilon` computes wider
brackets, and their upper end at the same sigma may be above the target. The functions of this module raise
sigma until that upper end is at most the target.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

from flows.answers.ask import CONFLICT, LIMIT_BYTES, LIMIT_SECONDS, Asked, UncoveredError, ask
from flows.answers.parse import UNKNOWN, loader
from flows.answers.question import adjacency_of, phases_of
from flows.printing import exactly, html_table, rounded_down, rounded_up
from privcore import (
    Direction,
    LimitError,
    Method,
    PrivsweepError,
    Problem,
    Status,
    answering,
)
from privcore.numerics.bracket_search import BracketSearch
from privcore.parameter import Real
from privcore.params import EPSILON, SIGMA
from privcore.training import written

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

RATE = Real(
    name="target",
    symbol=r"\tau",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(0.01, 0.1, 0.5),
    meaning="Largest advantage or true positive rate that is allowed",
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
        asks = self.enough.problem.asks
        return html_table(("sigma", "", asks, "method"), rows, self._title())

    def _title(self) -> str:
        return f"{self.enough.problem.asks} at most {exactly(self.target)}: {self.enough.problem.name}"

    def as_content(self) -> dict[str, Any]:
        """Return the noise multipliers and their proofs for JSON."""
        fields = self.enough.problem.as_fields()
        return {
            "problem": self.enough.problem.name,
            "fields": fields,
            self.enough.problem.asks: self.target,
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
    return noise_of(asked.problem)


def noise_of(problem: Problem) -> float:
    """Return the noise multiplier of a problem; for a run of several phases, the smallest one."""
    fields = problem.as_fields()
    return float(fields["sigma"]) if "sigma" in fields else min(phase.sigma for phase in phases_of(problem))


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
        still = f"at sigma={sigma_of(last):.6g} {last.problem.asks} may still be {last.upper!r}"
        kind = LimitError if last.status in {Status.TIMEOUT, Status.OUT_OF_MEMORY} else UncoveredError
        where = "in [{:.6g}, {:.6g}]".format(*domain)
        reason = (last.detail or still).rstrip(".")
        raise kind(f"No sigma {where} is proved to reach {last.problem.asks}={target!r}: {reason}.")
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
        kind: Class of problems about epsilon, if epsilon is proved to fall in the field sigma; or about
            another number of a run that rises with epsilon; its phases keep the ratios of their noise.
        fields: All fields of the problem except sigma.
        target: Largest epsilon that is allowed, in (0, 10000]; or the largest number, in (0, 1).
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
    target = (TARGET if kind.asks == "epsilon" else RATE).check(target)
    precision = PRECISION.check(precision)
    base = kind.from_fields({**fields, "sigma": 1.0} if "sigma" in kind.parameters else fields)
    chosen = usual_methods(kind) if methods is None else list(methods)

    def look(sigma: float, tolerance: float) -> Asked:
        problem = at(base, sigma)
        tuned = [_tuned(method, tolerance) for method in chosen]
        return ask(
            problem,
            tuned,
            limit_seconds=limit_seconds,
            limit_bytes=limit_bytes,
            until=lambda asked: asked.upper <= target or asked.lower > target,
        )

    domain = kind.parameters.get("sigma", SIGMA)
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


Again = Callable[[Problem], Asked]
"""Function that answers a problem as `privsweep epsilon` does, such as `sourced.asked_until_tight`."""

BISECTIONS = 3
"""Number of times that the interval in which sigma is raised is halved afterwards."""


def suffices(asked: Asked, target: float) -> bool:
    """Return whether epsilon is proved to be at most the target, as the target is printed in decimals."""
    proved = asked.ok and asked.confidence == 1.0 and asked.upper < math.inf
    return proved and Decimal(asked.upper) <= Decimal(repr(target))


def confirmed(found: Noise, again: Again, *, precision: float, largest: float) -> Noise:
    """Return a noise multiplier, raised until its epsilon, asked for again, is at most the target.

    Args:
        found: Result of a search.
        again: Function that answers a problem.
        precision: Relative distance at which two sigmas count as neighbours.
        largest: Largest sigma of the domain.

    Raises:
        UncoveredError: No sigma in the domain suffices with these settings.
        PrivsweepError: Methods contradict one another.
    """
    raising = _Raising(found=found, again=again, digits=math.ceil(-math.log10(precision)) + 2)
    asked, at = raising.ask(found.sigma), found.sigma
    if suffices(asked, found.target):
        return replace(found, enough=asked, brackets=found.brackets + raising.count)
    failed, step = at, precision
    while not suffices(asked, found.target):
        if at >= largest:
            reached = f"to reach {asked.problem.asks}={found.target!r} with default settings"
            raise UncoveredError(f"No sigma up to {largest:.6g} is proved {reached}.")
        # Epsilon falls at least about like 1/sigma.
        step = max(2.0 * step, min(asked.upper / found.target, 2.0) - 1.0)
        failed, at = at, min(raising.rounded(at * (1.0 + step)), largest)
        asked = raising.ask(at)
    for _ in range(BISECTIONS):
        middle = raising.rounded(math.sqrt(failed * at))
        if at <= failed * (1.0 + precision) or not failed < middle < at:
            break
        trial = raising.ask(middle)
        if suffices(trial, found.target):
            asked, at = trial, middle
        else:
            failed = middle
    return replace(found, enough=asked, least=found.enough, brackets=found.brackets + raising.count)


@dataclass(kw_only=True)
class _Raising:
    """The questions about larger and larger noise multipliers.

    Attributes:
        found: Result of the search.
        again: Function that answers a problem.
        digits: Significant digits of a noise multiplier.
        count: Number of brackets so far.
    """

    found: Noise
    again: Again
    digits: int
    count: int = 0

    def ask(self, sigma: float) -> Asked:
        """Return the bracket of epsilon at this sigma."""
        problem = self.found.enough.problem
        self.count += 1
        asked = self.again(at(problem, sigma))
        if asked.status == CONFLICT:
            raise PrivsweepError(asked.detail)
        return asked

    def rounded(self, sigma: float) -> float:
        """Return sigma with few digits."""
        return float(f"{sigma:.{self.digits}g}")


@dataclass(frozen=True, kw_only=True)
class NoiseForAny(Noise):
    """A noise multiplier that suffices for every sampler, and a smaller one, too small for some sampler.

    Attributes:
        samplers: The problems at the returned sigma, by sampler; `enough` is the bracket of the worst one.
    """

    samplers: Mapping[str, Problem]

    @property
    def worst(self) -> str:
        """The sampler with the largest epsilon at the returned sigma."""
        return next(name for name, each in self.samplers.items() if each == self.enough.problem)

    @property
    def relations(self) -> dict[str, str]:
        """The neighbouring relation of each sampler."""
        return {name: adjacency_of(each) for name, each in self.samplers.items()}

    def as_content(self) -> dict[str, Any]:
        """Return the noise multipliers and their proofs for JSON."""
        return super().as_content() | {
            "sampling": UNKNOWN,
            "worst": self.worst,
            "relations": self.relations,
        }

    def _title(self) -> str:
        asks = self.enough.problem.asks
        return f"{asks} at most {exactly(self.target)} for every sampler; worst {loader(self.worst)}"


def find_noise_any(
    asked: Mapping[str, Problem],
    target: float,
    again: Again,
    *,
    precision: float,
    limit_seconds: float,
) -> NoiseForAny:
    """Return the least sigma at which epsilon of every sampler is proved to be at most the target.

    Epsilon of every sampler falls in sigma, so a sigma that does not suffice for one of them does not suffice
    for all of them.

    Args:
        asked: Problems about epsilon by sampler, with any sigma.
        target: Largest epsilon that is allowed.
        again: Function that answers a problem with the settings of `privsweep epsilon`.
        precision: As in `find_noise`.
        limit_seconds: As in `find_noise`.

    Raises:
        PrivsweepError: As in `find_noise` and `confirmed`.
    """
    known = cache(again)

    def together(problem: Problem) -> Asked:
        """Return the largest bracket of all samplers at the sigma of a problem, or a failed answer."""
        sigma = noise_of(problem)
        found = [known(at(each, sigma)) for each in asked.values()]
        failed = next((each for each in found if not each.ok or each.confidence < 1.0), None)
        return failed or max(found, key=lambda each: (each.upper, each.lower))

    searched: list[Noise] = []
    for name in sorted(asked, key=lambda name: name != "none"):  # the fastest, and often the worst
        if searched and suffices(known(at(asked[name], max(each.sigma for each in searched))), target):
            continue
        kind, fields = type(asked[name]), asked[name].as_fields()
        searched.append(find_noise(kind, fields, target, precision=precision, limit_seconds=limit_seconds))
    most = max(searched, key=lambda each: each.sigma)
    short = max((each.short for each in searched if each.short), key=sigma_of, default=None)
    least = replace(most, short=short, brackets=sum(each.brackets for each in searched))
    found = confirmed(least, together, precision=precision, largest=SIGMA.upper)
    return NoiseForAny(  # without `least`, the narrower bracket of the search, which is that of one sampler
        target=found.target,
        enough=found.enough,
        short=found.short,
        brackets=found.brackets,
        samplers={name: at(each, found.sigma) for name, each in asked.items()},
    )


def at(problem: Problem, sigma: float) -> Problem:
    """Return a problem with another sigma; the noise of several phases keeps its ratios to the smallest."""
    fields = problem.as_fields()
    if "sigma" in fields:
        return type(problem).from_fields({**fields, "sigma": sigma})
    least = noise_of(problem)
    scaled = [replace(phase, sigma=sigma * (phase.sigma / least)) for phase in phases_of(problem)]
    return type(problem).from_fields({**fields, "phases": written(scaled)})
