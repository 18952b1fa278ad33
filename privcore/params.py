"""Every parameter of every problem, declared once: name, domain, typical range, unit, meaning."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

from privcore.errors import DomainError

SMALLEST_NORMAL = 2.2250738585072014e-308
Value = float | int | str


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A named quantity with its domain; validation, schemas, docs and test draws all read it."""

    name: str
    symbol: str
    meaning: str
    unit: str = "1"

    @property
    def domain(self) -> str:
        """Text of the domain as it stands in error messages and docs."""
        raise NotImplementedError

    def check(self, value: object) -> Value:
        """Return the value in its canonical type, or raise `DomainError` with one sentence."""
        raise NotImplementedError

    def typical_values(self) -> Sequence[Value]:
        """A few values that practitioners use, for tests and docs."""
        raise NotImplementedError

    def _as_float(self, value: object) -> float:
        """Return any real number but a boolean as a float; text and the rest are refused."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise self._refuse(value)
        try:
            return float(value)
        except OverflowError:
            raise self._refuse(value) from None

    def _refuse(self, value: object) -> DomainError:
        shown = repr(value) if isinstance(value, str | bool) or value is None else f"{value}"
        return DomainError(f"Expected {self.name} in {self.domain}, got {self.name}={shown[:60]}.")


@dataclass(frozen=True, kw_only=True)
class Real(Parameter):
    """A finite real number in an interval; an end is excluded where its flag says so."""

    lower: float
    upper: float
    lower_open: bool = False
    upper_open: bool = False
    typical: tuple[float, ...]

    @property
    def domain(self) -> str:
        """Interval notation, such as `(0, 1)`."""
        left, right = "(["[not self.lower_open], ")]"[not self.upper_open]
        return f"{left}{self.lower:.12g}, {self.upper:.12g}{right}"

    def check(self, value: object) -> float:
        """Return `value` as a float; NaN, infinities, -0.0, subnormals, booleans and text are refused."""
        x = self._as_float(value)
        negative_zero = x == 0 and math.copysign(1.0, x) < 0
        if not math.isfinite(x) or negative_zero or 0 < abs(x) < SMALLEST_NORMAL:
            raise self._refuse(value)
        below = x <= self.lower if self.lower_open else x < self.lower
        above = x >= self.upper if self.upper_open else x > self.upper
        if below or above:
            raise self._refuse(value)
        return x

    def typical_values(self) -> Sequence[float]:
        """The declared typical values."""
        return self.typical


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    """A whole number in a closed interval; a float is accepted where it is exactly whole (1e6)."""

    lower: int
    upper: int
    typical: tuple[int, ...]

    @property
    def domain(self) -> str:
        """Set notation, such as `{1, ..., 1000000000}`."""
        return f"{{{self.lower}, ..., {self.upper}}}"

    def check(self, value: object) -> int:
        """Return `value` as an int; fractions, NaN, booleans and text are refused."""
        x = self._as_float(value)
        if not x.is_integer() or (x == 0 and math.copysign(1.0, x) < 0) or not self.lower <= x <= self.upper:
            raise self._refuse(value)
        return int(x)

    def typical_values(self) -> Sequence[int]:
        """The declared typical values."""
        return self.typical


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of a few words."""

    choices: tuple[str, ...]

    @property
    def domain(self) -> str:
        """The words in braces."""
        return "{" + ", ".join(self.choices) + "}"

    def check(self, value: object) -> str:
        """Return the word, or raise `DomainError`."""
        if not isinstance(value, str) or value not in self.choices:
            raise self._refuse(value)
        return value

    def typical_values(self) -> Sequence[str]:
        """All the words."""
        return self.choices


SIGMA = Real(
    name="sigma",
    symbol=r"\sigma",
    unit="sensitivities",
    lower=1e-3,
    upper=1e6,
    typical=(0.3, 0.5, 1.0, 2.0, 10.0),
    meaning="Noise multiplier: standard deviation of the Gaussian noise of one step over its sensitivity",
)
LAPLACE_SCALE = Real(
    name="scale",
    symbol="b",
    unit="sensitivities",
    lower=1e-2,
    upper=1e6,
    typical=(0.5, 1.0, 2.0, 10.0),
    meaning="Scale of the Laplace noise of one step over its sensitivity; one step is 1/scale-DP",
)
LOCAL_EPSILON = Real(
    name="local_epsilon",
    symbol=r"\varepsilon_0",
    unit="nats",
    lower=1e-6,
    upper=100.0,
    typical=(0.5, 1.0, 2.0, 4.0),
    meaning="Pure differential privacy of one step; the randomized response is the worst such step",
)
STEPS = Integer(
    name="steps",
    symbol="t",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 100, 1000, 10_000),
    meaning="Steps of one epoch among which the steps that use an example are chosen",
)
PARTICIPATIONS = Integer(
    name="participations",
    symbol="k",
    unit="steps",
    lower=1,
    upper=10**9,
    typical=(1, 2, 10),
    meaning="Steps of one epoch that use an example, chosen uniformly without replacement",
)
EPOCHS = Integer(
    name="epochs",
    symbol="E",
    unit="epochs",
    lower=1,
    upper=10**6,
    typical=(1, 2, 10),
    meaning="Epochs; every epoch draws its steps anew",
)
SAMPLING_PROBABILITY = Real(
    name="sampling_probability",
    symbol=r"\lambda",
    lower=1e-12,
    upper=1.0,
    typical=(1e-4, 1e-3, 1e-2, 0.5, 1.0),
    meaning="Probability with which every step includes an example, independently",
)
DELTA = Real(
    name="delta",
    symbol=r"\delta",
    lower=0.0,
    upper=1.0,
    lower_open=True,
    upper_open=True,
    typical=(1e-10, 1e-8, 1e-6, 1e-4, 1e-2),
    meaning="Probability budget of approximate differential privacy",
)
EPSILON = Real(
    name="epsilon",
    symbol=r"\varepsilon",
    unit="nats",
    lower=-100.0,
    upper=10_000.0,
    typical=(0.01, 0.1, 0.5, 1.0, 4.0),
    meaning="Privacy loss threshold; the profile is defined, and needed by subsampling, for every real value",
)
ADJACENCY = Choice(
    name="adjacency",
    symbol=r"\sim",
    choices=("add-remove", "remove", "add"),
    meaning="Neighbouring relation: the example is removed (in P), added (in Q), or the worse of the two",
)
TOLERANCE = Real(
    name="tolerance",
    symbol=r"\tau",
    lower=1e-4,
    upper=1.0,
    typical=(0.01, 0.001),
    meaning="Asked relative width of the bracket, upper/lower - 1: a matter of tightness and speed only",
)
THINNING = Real(
    name="thinning",
    symbol=r"t \lambda",
    lower=0.01,
    upper=1.0,
    typical=(1.0, 0.1),
    meaning="Expected participations of the Poisson sampling that stands in for allocation; less is tighter",
)
ORDERS = Integer(
    name="orders",
    symbol=r"\alpha_{\max}",
    lower=2,
    upper=1024,
    typical=(64, 256, 1024),
    meaning="Highest integer order of the Renyi divergences; more are tighter where epsilon is small",
)
EXAMPLES = Integer(
    name="examples",
    symbol="n",
    unit="examples",
    lower=1,
    upper=10**15,
    typical=(100, 1000, 60_000, 100_000),
    meaning="Examples in the data set",
)
DIMENSION = Integer(
    name="dimension",
    symbol="d",
    unit="coordinates",
    lower=1,
    upper=10**9,
    typical=(1, 10, 1000),
    meaning="Coordinates of an example, each 0 or 1; the sensitivity of a sum is its square root",
)
PROPORTION = Real(
    name="proportion",
    symbol="p",
    lower=0.0,
    upper=1.0,
    typical=(0.1, 0.5, 0.9, 1.0),
    meaning="Probability with which a coordinate of an example is 1",
)
REPETITIONS = Integer(
    name="repetitions",
    symbol="R",
    unit="repetitions",
    lower=1,
    upper=10**7,
    typical=(10_000, 100_000),
    meaning="Independent repetitions of a simulation",
)
CONFIDENCE = Real(
    name="confidence",
    symbol=r"1 - \beta",
    lower=0.5,
    upper=1.0,
    upper_open=True,
    typical=(0.95, 0.99, 0.999),
    meaning="Probability with which the interval of a simulation is to contain the truth",
)
RANGE_BOUND = Choice(
    name="range_bound",
    symbol="c",
    choices=("sinh", "cosh"),
    meaning="Bound of half the range of the one-step ratio: itself, sinh, or the published cosh",
)
SPLIT = Choice(
    name="split",
    symbol=r"\pi",
    choices=("optimal", "authors"),
    meaning="How delta is split among the terms of a bound: optimally, or as in the authors' program",
)
SAMPLES = Integer(
    name="samples",
    symbol="n",
    unit="samples",
    lower=100,
    upper=10**9,
    typical=(1000, 10_000, 100_000),
    meaning="Independent samples of a simulation, in every direction",
)
SAMPLING = Choice(
    name="sampling",
    symbol="-",
    choices=("order", "importance", "plain"),
    meaning=(
        "What a simulation draws: all outputs; all, given that the integrand can be positive; or then only "
        "the order statistics that matter"
    ),
)
