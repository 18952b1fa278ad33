"""A training run as an object that answers several questions."""

import reprlib
from typing import Any, Unpack, cast

from flows.answers.ask import LIMIT_SECONDS
from flows.answers.question import COMPARED, question, typed
from flows.printing import exactly
from flows.spec.words import value_of
from privcore import DomainError
from privsweep import answers
from privsweep.enclosure import Comparison, Enclosure, Report, broadcast
from privsweep.words import RunWords, in_python, is_several, of_a_run


class Run:
    """A training run, whose words are those of `privsweep.epsilon`.

    Attributes:
        words: The words.

    Example:
        >>> run = Run(sampling="poisson", sigma=1.1, examples=60000, batch_size=256, epochs=10)
        >>> 0.91 < run.epsilon(delta=1e-5).upper < 0.93
        True
        >>> run.tpr(fpr=0.01).upper < 0.03
        True
    """

    @of_a_run()
    def __init__(self, **run: Unpack[RunWords]) -> None:
        """Keep the words of the run, which must describe one.

        Raises:
            DomainError: A word is missing, outside its domain, or contradicts another one.
        """
        self.words: dict[str, Any] = {name: value for name, value in run.items() if value is not None}

    def __repr__(self) -> str:
        """Return the words in one line."""
        import numpy as np

        told = {
            name: reprlib.repr(np.asarray(value).tolist()) if is_several(value) else exactly(value)
            for name, value in self.words.items()
        }
        return f"Run({', '.join(f'{name}={text}' for name, text in told.items())})"

    @in_python
    def epsilon(self, delta: Any = None, **options: Any) -> Enclosure:
        """Bound epsilon, as `privsweep.epsilon`.

        Args:
            delta: Delta, in (0, 1); that of the run by default.
            options: Other arguments of `privsweep.epsilon`.
        """
        return answers.epsilon(**self._with(delta=delta), **options)

    @in_python
    def delta(self, epsilon: Any, *, limit_seconds: float = LIMIT_SECONDS) -> Enclosure:
        """Bound delta at an epsilon.

        Args:
            epsilon: Epsilon in nats, at least 0.
            limit_seconds: As in `privsweep.ask`.
        """
        return self._ask("run-delta", limit_seconds, epsilon=epsilon)

    def tpr(self, fpr: Any, *, limit_seconds: float = LIMIT_SECONDS) -> Enclosure:
        """Bound the largest true positive rate of a membership test with a false positive rate.

        Args:
            fpr: False positive rate, in (0, 1).
            limit_seconds: As in `privsweep.ask`.
        """
        return self._ask("run-tpr", limit_seconds, false_positive_rate=fpr)

    def fpr(self, tpr: Any, *, limit_seconds: float = LIMIT_SECONDS) -> Enclosure:
        """Bound the smallest false positive rate of a membership test with a true positive rate.

        Args:
            tpr: True positive rate, in (0, 1).
            limit_seconds: As in `privsweep.ask`.
        """
        return self._ask("run-fpr", limit_seconds, true_positive_rate=tpr)

    def advantage(self, *, limit_seconds: float = LIMIT_SECONDS) -> Enclosure:
        """Bound the largest advantage of a membership test: true minus false positive rate.

        Args:
            limit_seconds: As in `privsweep.ask`.
        """
        return self._ask("run-advantage", limit_seconds)

    def profile(self, **numbers: Any) -> Report:
        """Return many numbers of the run, as `privsweep.profile`.

        Args:
            numbers: Numbers at which quantities are asked, as in `privsweep.profile`.
        """
        words = {name: value for name, value in self.words.items() if name != "delta"}
        return answers.profile(**words, **numbers)

    def compare(self, delta: Any = None, **options: Any) -> Comparison:
        """Bound epsilon under every sampler that the words describe, as `privsweep.compare`.

        Args:
            delta: Delta, in (0, 1); that of the run by default.
            options: Other arguments of `privsweep.compare`.

        Raises:
            DomainError: The run has words that describe one sampler, such as `group`.
        """
        words = {name: value for name, value in self._with(delta=delta).items() if name != "sampling"}
        if of_one := [name for name, value in words.items() if name not in COMPARED and value is not False]:
            raise DomainError(f"Expected a run without {', '.join(of_one)} to compare samplers.")
        return answers.compare(**{name: words[name] for name in words if name in COMPARED}, **options)

    @in_python
    def noise(self, epsilon: Any = None, delta: Any = None, **options: Any) -> Any:
        """Find the least noise multiplier for a target, as `privsweep.noise`; that of the run is not used.

        Args:
            epsilon: The target: the largest epsilon that is allowed.
            delta: Delta, in (0, 1); that of the run by default.
            options: Other arguments of `privsweep.noise`.
        """
        words = {name: value for name, value in self._with(delta=delta).items() if name != "sigma"}
        return answers.noise(epsilon=epsilon, **words, **options)

    def _with(self, **changed: Any) -> dict[str, Any]:
        return self.words | {name: value for name, value in changed.items() if value is not None}

    def _ask(self, problem: str, limit_seconds: float, **at: Any) -> Enclosure:
        @in_python
        def one(words: Any) -> Enclosure:
            numbers = {name: value_of(words.pop(name, None), name) for name in at}
            phases = question(typed(words)).run
            return answers.ask(problem, limit_seconds=limit_seconds, **phases, **numbers)

        return cast(Enclosure, broadcast(one, {**self.words, **at}))
