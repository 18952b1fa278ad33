"""Histories of Opacus: epsilon for the sampler that its accountants assume, and for the sampler in use."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent

from privcore import params
from privcore.accountant.accountant import PrivsweepAccountant
from privcore.errors import DomainError
from privcore.likelihood_ratio.questions import Question, requested
from privcore.likelihood_ratio.ratios import Gaussian
from privcore.training.brackets import enclosed_run
from privcore.training.epochs import ShufflingPhase
from privcore.training.params import BATCH, DROPPED, KEPT
from privcore.training.samplers import Above, Bounds, composed

SAMPLERS = ("poisson", "shuffling", "shuffling-once", "none")
"""Poisson sampling; a new random order in each epoch; the same random order in all epochs; a fixed order."""
RELATIONS = {
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": NeighboringRelation.REPLACE_ONE,
}
WHOLE = 1e-6
"""Largest relative deviation of the inverse of a sample rate from a whole number of steps."""


@dataclass(frozen=True)
class Stretch:
    """Equal steps in a row: noise multiplier, sample rate, number of steps."""

    noise: float
    rate: float
    steps: int


@dataclass(frozen=True)
class Epochs:
    """Epochs of equal noise.

    Attributes:
        noise: Noise multiplier; the smallest one if it changes within the epoch.
        steps: Steps of an epoch; 0 if the epoch is not complete, or if its noise changes.
        count: Number of epochs.
    """

    noise: float
    steps: int
    count: int


@dataclass(frozen=True)
class OpacusRun:
    """A run whose steps were recorded by an accountant of Opacus.

    Attributes:
        stretches: The recorded steps.
        sampler: Sampler in use, one of `SAMPLERS`.
        adjacency: Neighbouring relation for the sampler in use.
        tolerance: Requested relative width of intervals of epsilon.
        dropped: Share of the examples that every shuffled epoch leaves out.
        batch: Number of examples in a full batch of a shuffled epoch, or fewer.
        kept: Share of the examples in a smaller last batch of every shuffled epoch.
    """

    stretches: tuple[Stretch, ...]
    sampler: str
    adjacency: str
    tolerance: float = params.WIDTH
    dropped: float = 0.0
    batch: int = 1
    kept: float = 0.0

    @property
    def distance(self) -> float:
        """Largest distance of the sums of neighbours; an example that was left out may replace another."""
        is_replaced = self.adjacency == "replace-one" or (self.dropped and self.adjacency == "add-remove")
        return 2.0 if is_replaced else 1.0

    @property
    def declared(self) -> PrivsweepAccountant:
        """Accountant for the assumption of Opacus, Poisson sampling with one example more or less."""
        return self._poisson(NeighboringRelation.ADD_OR_REMOVE_ONE)

    def get_epsilon_interval(self, delta: float) -> tuple[float, float]:
        """Return lower and upper end of epsilon for the sampler in use.

        Args:
            delta: Probability in (0, 1).
        """
        return self._interval("epsilon", params.DELTA.check(delta))

    def get_delta_interval(self, epsilon: float) -> tuple[float, float]:
        """Return lower and upper end of delta for the sampler in use.

        Args:
            epsilon: Privacy loss threshold in nats, >= 0.
        """
        if not 0.0 <= epsilon < math.inf:
            raise DomainError(f"Expected epsilon in [0, inf), got {epsilon}.")
        return self._interval("delta", float(epsilon))

    def _interval(self, asks: str, at: float) -> tuple[float, float]:
        """Return the bracket of epsilon or delta."""
        if self.sampler == "poisson":
            return _read(self._poisson(RELATIONS[self.adjacency]), asks, at)
        if not self.stretches or any(each.noise == 0.0 for each in self.stretches):
            return _read(self.declared, asks, at)
        epochs = list(passes(self.stretches))
        whole = [each for each in epochs if each.steps]
        most = self._public(epochs)
        if self.sampler == "none":
            return _read(self._public(whole), asks, at)[0], _read(most, asks, at)[1]
        distance = self.distance
        tolerance = requested(asks, self.tolerance)
        question = Question(asks=asks, at=at, adjacency="add-remove")
        bounds = self._shuffled(whole, distance * math.sqrt(_square(epochs) - _square(whole)))
        lower, upper, _ = enclosed_run(bounds, question, tolerance, distance * math.sqrt(_square(epochs)))
        return lower, min(upper, _read(most, asks, at)[1])

    def _poisson(self, relation: NeighboringRelation) -> PrivsweepAccountant:
        """Return the accountant for Poisson sampling."""
        accountant = PrivsweepAccountant(relation, tolerance=self.tolerance)
        for each in self.stretches:
            accountant.compose(PoissonSampledDpEvent(each.rate, GaussianDpEvent(each.noise)), each.steps)
        return accountant

    def _public(self, epochs: list[Epochs]) -> PrivsweepAccountant:
        """Return the accountant for epochs in which the step of each example is known."""
        adjacency, sensitivity = ("replace-one", 2) if self.distance > 1.0 else (self.adjacency, None)
        accountant = PrivsweepAccountant(RELATIONS[adjacency], sensitivity, self.tolerance)
        for each in epochs:
            accountant.compose(GaussianDpEvent(each.noise), each.count)
        return accountant

    def _shuffled(self, whole: list[Epochs], rest: float) -> Bounds:
        """Return the bounds of shuffled epochs.

        Epochs in the same order are one epoch, whose noise is that of the means of the outputs, if they have
        the same number of steps. The others are left out for the lower end, which is post-processing.

        Args:
            whole: Complete epochs.
            rest: Distance of the Gaussian mechanism that dominates the other epochs.
        """
        public = Above(Gaussian(math.hypot(rest, self.distance * math.sqrt(_square(whole)))))
        counted = Counter[tuple[float, int]]()
        for each in whole:
            counted[each.noise, each.steps] += each.count
        if self.sampler == "shuffling-once":
            lengths = {steps for _, steps in counted}
            squares = {steps: _square([e for e in whole if e.steps == steps]) for steps in lengths}
            if not squares:
                return Bounds((public,), ())
            steps = max(squares, key=lambda length: squares[length])
            sigma = 1.0 / math.sqrt(squares[steps])
            one = ShufflingPhase(sigma=sigma, steps=steps, redraw="once", dropped=self.dropped)
            return Bounds((public,), one.bounds(self.adjacency, 1.0).below)
        parts = [
            ShufflingPhase(
                sigma=noise,
                steps=steps - (self.kept > 0.0),
                epochs=count,
                redraw="each-epoch",
                dropped=self.dropped,
                batch=self.batch,
                kept=self.kept,
            ).bounds(self.adjacency, 1.0)
            for (noise, steps), count in sorted(counted.items())
        ]
        below = composed(parts).below if parts else ()
        if rest:
            parts.append(Bounds.exact(Gaussian(rest)))
        return Bounds(composed(parts).above, below)


def from_opacus(
    history: Any,
    sampler: str = "poisson",
    adjacency: str | None = None,
    tolerance: float = params.WIDTH,
    dropped: float = 0.0,
    batch: int = 1,
    kept: float = 0.0,
) -> OpacusRun:
    """Return the run that an accountant of Opacus recorded.

    Opacus accounts for Poisson sampling, with one example more or less, also if the data loader shuffles
    (`poisson_sampling=False`). `declared` answers for this assumption, and the run itself for the sampler in
    use.

    Args:
        history: Accountant of Opacus, its `state_dict()`, or its `history`: noise multiplier, sample rate and
            number of steps of each stretch.
        sampler: `poisson`; `shuffling`, with a new order in each epoch; `shuffling-once`, with the same order
            in all epochs, as by a distributed sampler without `set_epoch`; `none`, for a fixed order.
        adjacency: `add-remove` (the default for `poisson`), `zero-out` or `replace-one`. Samplers other than
            `poisson` need one of the last two, since their number of steps depends on the number of examples,
            unless every epoch leaves out examples.
        tolerance: Requested relative width of intervals of epsilon.
        dropped: Share of the examples that every shuffled epoch leaves out; with `drop_last=True`, n mod b of
            all n.
        batch: Number of examples in a full batch; for `shuffling`, the larger the smaller is the upper end.
        kept: Share of the examples in a smaller last batch; with `drop_last=False`, n mod b of all n.

    Raises:
        DomainError: The history or an argument is outside its domain.

    Example:
        >>> run = from_opacus([(1.1, 1 / 100, 500)], sampler="shuffling", adjacency="zero-out")
        >>> run.declared.get_epsilon(1e-5) < run.get_epsilon_interval(1e-5)[0]
        True
    """
    if sampler not in SAMPLERS:
        raise DomainError(f"Expected sampler in {{{', '.join(SAMPLERS)}}}, got {sampler!r}.")
    if adjacency is None and sampler == "poisson":
        adjacency = "add-remove"
    dropped = float(DROPPED.check(dropped))
    if dropped and not sampler.startswith("shuffling"):
        raise DomainError(f"Expected sampler=shuffling or shuffling-once with dropped, got {sampler!r}.")
    batch, kept = int(BATCH.check(batch)), float(KEPT.check(kept))
    if (batch > 1 or kept) and (dropped or sampler != "shuffling"):
        raise DomainError("Expected batch and kept with sampler=shuffling, and without dropped.")
    allowed = [name for name in RELATIONS if sampler == "poisson" or dropped or name != "add-remove"]
    if adjacency not in allowed:
        raise DomainError(
            f"Expected adjacency {' or '.join(allowed)} for sampler={sampler}, got {adjacency!r}."
        )
    stretches = tuple(_stretch(entry) for entry in _entries(history))
    lengths = [_steps(each) for each in stretches] if sampler != "poisson" else []
    if kept and min(lengths, default=2) < 2:
        raise DomainError("Expected epochs of at least 2 steps with kept.")
    tolerance = params.TOLERANCE.check(tolerance)
    return OpacusRun(stretches, sampler, str(adjacency), tolerance, dropped, batch, kept)


def _entries(history: Any) -> Sequence[Any]:
    """Return the entries of a history."""
    if isinstance(history, Mapping):
        if "history" not in history:
            raise DomainError("Expected a state_dict of an accountant of Opacus with the key `history`.")
        history = history["history"]
    return list(getattr(history, "history", history))


def _stretch(entry: Any) -> Stretch:
    """Return one entry of a history, checked."""
    try:
        noise, rate, steps = entry
        found = Stretch(float(noise), float(rate), int(steps))
    except (TypeError, ValueError):
        found = None
    if found is None or not (found.noise >= 0.0 and 0.0 < found.rate <= 1.0 and found.steps >= 1):
        raise DomainError(f"Expected (noise multiplier, sample rate, steps) in the history, got {entry!r}.")
    return found


def _steps(stretch: Stretch) -> int:
    """Return the number of steps of an epoch."""
    steps = round(1.0 / stretch.rate)
    if abs(steps * stretch.rate - 1.0) > WHOLE:
        raise DomainError(
            f"Expected sample rates of 1 / (steps of an epoch), got {stretch.rate}: an epoch of shuffled "
            "batches has a whole number of steps."
        )
    return steps


def passes(stretches: Sequence[Stretch]) -> Iterator[Epochs]:
    """Yield the epochs of a run, in order; an epoch ends early if the number of its steps changes.

    Example:
        >>> [(e.noise, e.steps, e.count) for e in passes([Stretch(1.0, 0.1, 25), Stretch(2.0, 0.1, 15)])]
        [(1.0, 10, 2), (1.0, 0, 1), (2.0, 10, 1)]
    """
    position, length, noise, mixed = 0, 0, math.inf, False
    for each in stretches:
        left, steps = each.steps, _steps(each)
        if position and steps != length:
            yield Epochs(noise, 0, 1)
            position = 0
        length = steps
        if position:
            used = min(left, length - position)
            mixed = mixed or each.noise != noise
            noise = min(noise, each.noise)
            position, left = position + used, left - used
            if position == length:
                yield Epochs(noise, 0 if mixed else length, 1)
                position = 0
        if left >= length:
            yield Epochs(each.noise, length, left // length)
        if left % length:
            position, noise, mixed = left % length, each.noise, False
    if position:
        yield Epochs(noise, 0, 1)


def _square(epochs: list[Epochs]) -> float:
    """Return the sum of the squares of the inverse noise multipliers of all epochs."""
    return math.fsum(each.count / (each.noise * each.noise) for each in epochs)


def _read(accountant: PrivsweepAccountant, asks: str, at: float) -> tuple[float, float]:
    """Return the interval of epsilon or delta."""
    return accountant.get_epsilon_interval(at) if asks == "epsilon" else accountant.get_delta_interval(at)
