"""The one reader of words: options, arguments, files, lines of JSON and SQL become a problem here."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from flows.answers.ask import LIMIT_BYTES, LIMIT_SECONDS, ask
from flows.answers.parse import KEPT, SAMPLING, ZEROED, checked, completed, kind_of, problem_of, with_sizes
from flows.printing import exactly
from flows.spec.depth import parsed
from flows.spec.words import printed_relation, value_of
from privcore import DomainError, Method, PrivsweepError, Problem, find_problem, methods_for
from privcore.errors import ChoiceError, unknown
from privcore.params import DELTA, EXAMPLES
from privcore.training import PHASES, Phase, from_sizes, phase_named, written

RUN = (
    "sigma",
    "steps",
    "delta",
    "participations",
    "epochs",
    "adjacency",
    "sampling",
    "sampling_probability",
    "redraw",
    "largest_batch",
    "examples",
    "batch_size",
    "drop_last",
    "keep_last",
    "group",
    "workers",
    "max_grad_norm",
    "run",
    "repeats",
)
"""Words of a training run: the options of commands, and the arguments of functions."""
COMPARED = (
    "sigma",
    "steps",
    "delta",
    "participations",
    "epochs",
    "adjacency",
    "examples",
    "batch_size",
    "workers",
    "max_grad_norm",
)
"""Words of a comparison of samplers."""
FLAGS = ("drop_last", "keep_last")
"""Words that are true if they are given."""
OF_ONE = ("sampling_probability", "redraw", "largest_batch", *FLAGS, "group", "repeats")
"""Words that describe one sampler, so that they contradict an unknown one."""
WHOLE = ("run", "repeats")
"""Words whose texts have commas of their own."""
SPELLINGS = {
    "noise_multiplier": "sigma",
    "sample_rate": "sampling_probability",
    "target_delta": "delta",
    "target_epsilon": "epsilon",
}
"""Names that other libraries have for some of these words."""


class Described(NamedTuple):
    """A kind of problem with the fields that were given, and notes for people, one sentence each."""

    kind: type[Problem]
    fields: dict[str, Any]
    notes: list[str]

    @property
    def problem(self) -> Problem:
        """The problem; raises `DomainError` if a field is missing or outside its domain."""
        return self.kind.asked(self.fields)

    @property
    def run(self) -> dict[str, Any]:
        """The phases of the training run and its neighbouring relation: fields of problems about a run."""
        return run_of(self.kind.asked({"delta": DELTA.typical[0], **self.fields}))


def typed(words: Mapping[str, object]) -> dict[str, Any]:
    """Return the words that were given, under their own names, with numbers in place of their texts.

    Args:
        words: Texts of a command line, or values of Python; None if not given.

    Raises:
        DomainError: A value is neither a word nor a number, or is given under two names.
    """
    found: dict[str, Any] = {}
    for spelled, word in words.items():
        name = SPELLINGS.get(spelled, spelled)
        if word is None or (name in FLAGS and word in (False,)):
            continue
        if name in found:
            raise DomainError(f"Expected {name} or {spelled}, which are the same, got both.")
        found[name] = True if name in FLAGS and word in (True,) else value_of(word, name)  # also of numpy
    return found


def spread(words: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return the words of each run, as `typed` does, if some have several values with commas between them.

    Example:
        >>> spread({"sigma": "1,2", "steps": "5", "delta": None})
        [{'sigma': 1, 'steps': 5}, {'sigma': 2, 'steps': 5}]
    """
    given = {name: word for name, word in words.items() if word is not None}
    each = [
        word.split(",") if isinstance(word, str) and name not in WHOLE else [word]
        for name, word in given.items()
    ]
    return [typed(dict(zip(given, one, strict=True))) for one in product(*each)]


def question(words: Mapping[str, Any]) -> Described:
    """Read a question from words.

    Args:
        words: With `problem`, its name and its fields; with `run`, the file or the text of a run of phases
            and its `adjacency`, `delta` and `examples`; otherwise those of `RUN`. Numbers are numbers.

    Raises:
        PrivsweepError: Words are missing, contradict one another, or are outside their domains.

    Example:
        >>> question({"sampling": "none", "sigma": 1.0, "delta": 1e-5}).problem.name
        'unamplified-epsilon'
    """
    given = dict(words)
    if isinstance(word := given.get("adjacency"), str):
        given["adjacency"] = printed_relation(word)
    if (name := given.pop("problem", None)) is not None:
        kind = find_problem(name)
        return Described(kind, from_sizes(kind, given).as_fields(), [])
    notes = []
    if given.pop("max_grad_norm", None) is not None:
        notes.append("max_grad_norm does not matter: sigma is the noise divided by the clipping norm.")
    if (count := given.pop("workers", None)) not in (None, 1):
        raise _of_workers(count, given)
    repeats = given.pop("repeats", None)
    found = _phases(given) if "run" in given else _sampled(given)
    found = found if repeats is None else _repeated(found, repeats)
    return found._replace(notes=found.notes + notes)


def _repeated(one: Described, repeats: object) -> Described:
    """Turn a question about one run into one about the best of several."""
    fields = {**one.run, "repeats": repeats}
    if "delta" in one.fields:
        fields["delta"] = one.fields["delta"]
    return Described(find_problem("tuned-epsilon"), fields, one.notes)


def _sampled(given: dict[str, Any]) -> Described:
    """Read a run of one phase with a named sampler."""
    sampling = checked(given.pop("sampling", None))
    group, last = given.pop("group", 1), [name for name in FLAGS if given.pop(name, False)]
    if len(last) > 1:
        raise DomainError("Expected --drop-last or --keep-last, got both.")
    size, batch = given.pop("examples", None), given.pop("batch_size", None)
    kind = problem_of(sampling)
    for name in given:
        if name not in kind.parameters:
            raise DomainError(
                f"Expected no {name} with sampling {sampling}: {kind.name} does not have this field."
            )
    kind, fields = kind_of(sampling, given)
    size = None if size is None else int(EXAMPLES.check(size))
    new_orders = sampling == "shuffling" and (
        fields.get("epochs", 1) == 1 or fields.get("redraw") == "each-epoch"
    )
    parameters = (*kind.parameters, *(["batch"] if new_orders else []))
    fields, notes = with_sizes(sampling, parameters, fields, size=size, batch=batch, last=last)
    own: dict[str, Any] = {name: fields.pop(name) for name in ("dropped", "batch", "kept") if name in fields}
    if own and group == 1:
        if "dropped" not in own:  # the same relations as without the sizes
            kind.asked({"delta": DELTA.typical[0], **completed(sampling, fields)})
        found = _of_sizes(own, fields)
        return found._replace(notes=notes + large_delta(fields.get("delta"), size))
    if sampling == "none" and "participations" not in fields and fields.get("steps", 1) != 1:
        notes = [*notes, _seldom(fields["steps"])]
    found = Described(kind, completed(sampling, fields), notes + large_delta(fields.get("delta"), size))
    return found if group == 1 else _of_group(found, sampling, group)


def _seldom(steps: object) -> str:
    """Return the note about steps without sampling: an example is taken to be used in one step only."""
    return (
        f"participations=1: each example is used in one of the {steps} steps of an epoch; full batches use "
        f"it in each step, which is participations={steps}."
    )


def _phases(given: dict[str, Any]) -> Described:
    """Read a run of several phases."""
    text, kind = str(given.pop("run")), find_problem("run-epsilon")
    refuse_options(given)
    fields = run_question(text, given)
    reasons = methods_for(kind.from_fields({"delta": DELTA.typical[0], **fields})).values()
    if None not in reasons:
        raise DomainError(" ".join(dict.fromkeys(filter(None, reasons))))
    return Described(kind, fields, [])


def _of_group(one: Described, sampling: str, group: object) -> Described:
    """Turn a question about one example into one about all examples of an owner."""
    (phase,) = phases_of(one.kind.asked({"delta": DELTA.typical[0], **one.fields}))
    if "group" not in phase.parameters:
        covered = ", ".join(name for name, each in PHASES.items() if "group" in each.parameters)
        raise DomainError(f"Expected --group with sampling {covered}; no theorem covers {sampling}.")
    owned = replace(phase, group=phase.parameters["group"].check(group))  # type: ignore[call-arg]
    fields: dict[str, Any] = {"phases": written((owned,)), "adjacency": one.run["adjacency"]}
    if "delta" in one.fields:
        fields["delta"] = one.fields["delta"]
    return _phases({"run": fields.pop("phases"), **fields})._replace(notes=one.notes)


def _of_sizes(sizes: dict[str, Any], fields: dict[str, Any]) -> Described:
    """Read shuffled epochs that leave out some examples, or whose batch size matters: a run of one phase."""
    if fields.get("epochs", 1) != 1 and "redraw" not in fields:
        raise DomainError(KEPT.format("shuffling"))
    asked = {name: value for name, value in fields.items() if name in ("adjacency", "delta")}
    own = {name: value for name, value in fields.items() if name not in asked}
    phase = phase_named("shuffling", {"redraw": "each-epoch", **own, **sizes})
    return _phases({**asked, "run": written((phase,))})


def _of_workers(count: object, given: Mapping[str, Any]) -> ChoiceError:
    """Return the error about several workers: the answer depends on the noise of the sum of gradients."""
    if isinstance(count, bool) or not isinstance(count, int | float) or not 1 <= count < math.inf:
        return ChoiceError(f"Expected a number of at least 1 for --workers, got {str(count)[:50]}.", [])
    sigma = given.get("sigma")
    here = f", here {math.sqrt(count) * sigma:.10g}" if isinstance(sigma, int | float) else ""
    return ChoiceError(
        "Expected no --workers, since the answer depends on the noise of the sum of all gradients:",
        [
            f"each worker adds its own noise: sigma of the sum is sqrt({count}) times that of a worker{here}",
            "one worker adds the noise (Opacus): sigma is that of the sum; leave out the workers",
            "each worker has its own part of the data: same steps and rate; batch_size of all together",
        ],
    )


def large_delta(delta: object, examples: int | None) -> list[str]:
    """Return a note about a delta that is not below 1 / examples, or an empty list."""
    if examples is None or not isinstance(delta, float) or not 1.0 / examples <= delta < 1.0:
        return []
    told = f"delta={exactly(delta)} is not below 1/examples={1.0 / examples:.3g}"
    return [f"{told}: a mechanism that publishes one example in full may satisfy it."]


# ---------------------------------------------------------------------- a training run in phases


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


def run_of(problem: Problem) -> dict[str, Any]:
    """Return the phases of the run of a problem about epsilon, in text, and its neighbouring relation."""
    return {"phases": written(phases_of(problem)), "adjacency": adjacency_of(problem)}


def adjacency_of(problem: Problem) -> str:
    """Return the neighbouring relation of a problem about epsilon, in the words of a run of phases.

    For shuffling, remove and add are directions of zero-out.
    """
    return relation_of(type(problem), str(problem.as_fields()["adjacency"]))


def relation_of(kind: type[Problem], word: str) -> str:
    """Return the same for a kind of problem and the word of its neighbouring relation."""
    return ZEROED.get(word, word) if kind.name == SAMPLING["shuffling"] else word


KEYS = ("adjacency", "delta", "examples", "phase")
LARGEST_FILE = 10**6
"""Largest size of a file in bytes."""


def run_question(text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the problem about a run: phases, adjacency and delta.

    Args:
        text: Path of a TOML file, or the phases themselves, such as `none(sigma=1,steps=10)`.
        options: Values of `adjacency`, `delta` and `examples` from the command line, which replace those of
            the file; None if they were not given.

    Raises:
        PrivsweepError: The file cannot be read, a key is unknown or missing, or a phase is impossible.
    """
    given = {name: value for name, value in options.items() if value is not None}
    content = {"phases": text} if "(" in text else _content(Path(text))
    fields = {**content, **given}
    if "adjacency" not in fields:
        raise DomainError(
            "Expected adjacency (add-remove, zero-out or replace-one), in the file of the run or as "
            "--adjacency."
        )
    size = fields.pop("examples", None)
    if "phase" in fields:
        listed = enumerate(fields.pop("phase"), 1)
        fields["phases"] = "; ".join(_phase(number, phase, size) for number, phase in listed)
    return fields


def refuse_options(options: Iterable[str]) -> None:
    """Raise `DomainError` if an option was given that belongs to the phases of a run."""
    for name in options:
        if name not in ("adjacency", "delta", "examples"):
            option = name.replace("_", "-")
            raise DomainError(f"Expected {name} in the phases of the run, got --{option} with --run.")


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, whose phases are a list of tables."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise DomainError(f"Expected a file of at most {LARGEST_FILE} bytes, got {path}.")
        content = parsed(raw)
    except OSError as error:
        raise DomainError(f"Cannot read the run {path}: {error.strerror or error}.") from None
    except UnicodeError:
        raise DomainError(f"Expected TOML in UTF-8, but {path} is not UTF-8.") from None
    except ValueError as error:
        raise DomainError(f"Cannot read the run {path}: {str(error)[:120].rstrip('.')}.") from None
    for name in content:
        if name not in KEYS:
            raise unknown("key of a run", name, list(KEYS))
    phases = content.get("phase")
    if not isinstance(phases, list) or not phases or not all(isinstance(each, dict) for each in phases):
        raise DomainError(f"Expected at least one table [[phase]] in {path}.")
    return content


def _phase(number: int, phase: Mapping[str, Any], size: Any) -> str:
    """Return the text of a phase; examples and a batch size determine the steps of an epoch and the rate.

    Args:
        number: Number of the phase, from 1, for messages.
        phase: Its keys.
        size: Size of the data set, if the file states it for all phases.
    """
    fields = dict(phase)
    sampling = fields.pop("sampling", None)
    if not isinstance(sampling, str):
        raise DomainError(f'Expected the sampling of phase {number}, such as sampling = "poisson".')
    try:
        if sampling not in PHASES:
            raise unknown("sampling", sampling, list(PHASES))
        parameters = PHASES[sampling].parameters
        batch, size = fields.pop("batch_size", None), fields.pop("examples", size)
        fields, _ = with_sizes(sampling, parameters, fields, size=size, batch=batch)
        return written((phase_named(sampling, fields),))
    except PrivsweepError as error:
        raise type(error)(f"Phase {number}: {error}") from None


# ---------------------------------------------------------------------- lines of JSON


MISUSE = "misuse"


def answer_lines(
    lines: Iterable[bytes],
    methods: Sequence[Method] | None = None,
    *,
    limit_seconds: float = LIMIT_SECONDS,
    limit_bytes: float = LIMIT_BYTES,
) -> Iterator[dict[str, Any]]:
    """Answer problems in lines of JSON, one by one and in order; empty lines are skipped.

    Args:
        lines: Each `{"problem": "allocation-epsilon", "sigma": 1, ...}`.
        methods: As in `ask`.
        limit_seconds: As in `ask`.
        limit_bytes: As in `ask`.

    Yields:
        The content of one JSON line each; an invalid line has the status `misuse` and a reason.
    """
    for line in lines:
        if not line.strip():
            continue
        content: dict[str, Any] = {}
        try:
            content = _json_object(line)
            if not isinstance(content.get("problem"), str):
                raise DomainError("Expected the name of a problem under the key problem.")
            problem = question(content).problem
            asked = ask(problem, methods, limit_seconds=limit_seconds, limit_bytes=limit_bytes)
            yield asked.as_content()
        except PrivsweepError as error:
            yield _misuse(content, str(error))


def _json_object(line: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise DomainError(f"Expected each field once, got {twice} twice.")
        return dict(pairs)

    try:
        content = json.loads(line.decode("utf-8-sig"), object_pairs_hook=once)
    except DomainError:
        raise
    except UnicodeError:
        raise DomainError("Expected one JSON object per line, got bytes that are not UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise DomainError(f"Expected one JSON object per line: {error}.") from None
    if not isinstance(content, dict):
        raise DomainError(f"Expected one JSON object per line, got {type(content).__name__}.")
    return content


def _misuse(content: Mapping[str, Any], sentence: str) -> dict[str, Any]:
    fields = {key: value for key, value in content.items() if key != "problem"}
    return {
        "problem": content.get("problem"),
        "fields": {key: _echo(value) for key, value in fields.items()},
        "lower": 0.0,
        "upper": math.inf,
        "confidence": 1.0,
        "status": MISUSE,
        "methods": [],
        "detail": sentence,
    }


def _echo(value: Any) -> Any:
    """Return a rejected value as it was given; NaN, which strict JSON lacks, becomes text."""
    return "nan" if isinstance(value, float) and math.isnan(value) else value
