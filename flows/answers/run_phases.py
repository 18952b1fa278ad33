"""The phases of a training run from options of the command line, for numbers that need the run itself."""

from collections.abc import Mapping

from flows.answers.parse import training_question
from flows.answers.samplers import SAMPLING, ZEROED
from privcore import Problem
from privcore.params import DELTA
from privcore.training import PHASES, Phase, phase_named, written


def phases_of(problem: Problem) -> tuple[Phase, ...]:
    """Return the phases of the run that a problem about epsilon asks about.

    Without sampling, only the steps that use the example count.
    """
    if run := getattr(problem, "run", None):
        return tuple(run())
    sampling = next(word for word, name in SAMPLING.items() if name == problem.name)
    fields = problem.as_fields()
    known = {name: value for name, value in fields.items() if name in PHASES[sampling].parameters}
    if known.get("redraw") == "one-epoch":  # a single epoch has no order to keep
        known["redraw"] = "each-epoch"
    if sampling == "none":
        known = {"sigma": fields["sigma"], "steps": fields["participations"], "epochs": fields["epochs"]}
    return (phase_named(sampling, known),)


def adjacency_of(problem: Problem) -> str:
    """Return the neighbouring relation of a problem about epsilon, in the words of a run of phases.

    For shuffling, remove and add are directions of zero-out.
    """
    return relation_of(type(problem), str(problem.as_fields()["adjacency"]))


def relation_of(kind: type[Problem], word: str) -> str:
    """Return the same for a kind of problem and the word of its neighbouring relation."""
    return ZEROED.get(word, word) if kind.name == SAMPLING["shuffling"] else word


def one_phase(
    sampling: str | None, options: Mapping[str, str | None], *, examples: str | None, batch_size: str | None
) -> tuple[str, str, list[str]]:
    """Return the text of a run of one phase, its adjacency, and notes about it, one sentence each.

    The words mean the same as in `privsweep epsilon`.

    Args:
        sampling: Scheme that chooses the examples of a step.
        options: Text of every field of its problem that has an option; None if it was not given.
        examples: Size of the training set; with a batch size, it gives the number of steps.
        batch_size: Examples in a batch.

    Raises:
        PrivsweepError: Options contradict one another or do not belong to this sampling.
    """
    kind, given, notes = training_question(sampling, options, examples=examples, batch_size=batch_size)
    problem = kind.asked({**given, "delta": DELTA.typical[0]})
    return written(phases_of(problem)), adjacency_of(problem), notes
