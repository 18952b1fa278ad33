"""Writes the test vectors: `python -m flows.vectors.make` (some minutes) replaces `vectors.jsonl`.

With names of problems as arguments, the vectors of the other problems are kept.
"""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from flows.answers.ask import CONFLICT, Asked, ask
from flows.vectors.questions import COUNTS, questions
from privcore import Method, Problem, find, methods_for
from privcore.registry import versions
from storage.place.disk import write_atomically

FILE = Path(__file__).with_name("vectors.jsonl")

TOLERANCE = {"epsilon": 0.001, "delta": 0.01}
"""Requested relative width of a bracket; delta takes longer."""

WIDEST = 1.25
"""Largest quotient of both ends of a vector; shuffling has wider brackets, since no method encloses it."""

RANGES = {"epsilon": (1e-4, 1000.0), "delta": (1e-15, 0.999)}
"""Smallest lower end and largest upper end of a vector."""

_FAMILIES = ("certified", "exact", "sums", "clones", "composed", "largest")
_SECONDS = 30.0  # estimated, which is cautious: a question takes a few seconds


def proving(problem: Problem) -> list[Method]:
    """Return the methods whose proved ends make the bracket of a vector.

    Example:
        >>> from privcore import find_problem
        >>> [method.name for method in proving(find_problem("poisson-epsilon")(sigma=1, delta=1e-5, steps=9,
        ...     sampling_probability=0.1))]
        ['poisson.certified']
    """
    kinds = [kind for kind in methods_for(problem) if kind.name.partition(".")[2] in _FAMILIES]
    tolerance = {"tolerance": TOLERANCE[problem.asks]}
    return [find(kind.name)(**(tolerance if "tolerance" in kind.knobs else {})) for kind in kinds]


def bracket(problem: Problem) -> Asked:
    """Return the best proved bracket of a question.

    Raises:
        ArithmeticError: Two methods contradict one another.
    """
    found = ask(problem, proving(problem), limit_seconds=_SECONDS)
    if found.status == CONFLICT:
        raise ArithmeticError(f"{problem.name} {problem.as_fields()}: {found.detail}")
    return found


def is_telling(problem: Problem, found: Asked) -> bool:
    """Return whether a bracket is proved and narrow, and its ends are numbers that users meet."""
    smallest, largest = RANGES[problem.asks]
    narrow = found.upper <= WIDEST * found.lower or problem.name.startswith("shuffling")
    return found.ok and found.confidence == 1 and smallest <= found.lower <= found.upper <= largest and narrow


def vectors(problem: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield the test vectors of a problem."""
    asked = ((question, bracket(question)) for question in questions(problem))
    telling = ((question, found) for question, found in asked if is_telling(question, found))
    for number, (question, found) in enumerate(islice(telling, count), start=1):
        yield {
            "id": f"{problem}-{number}",
            "problem": problem,
            "question": question.as_fields(),
            "lower": found.lower,
            "upper": found.upper,
            "lower_by": f"{found.lower_by} {versions()[found.lower_by]}",
            "upper_by": f"{found.upper_by} {versions()[found.upper_by]}",
            "version": version("privsweep"),
        }


def lines(problem: str) -> list[str]:
    """Return the lines of a problem."""
    return [json.dumps(vector, allow_nan=False) for vector in vectors(problem, COUNTS[problem])]


def main() -> None:
    """Write all vectors, or those of the problems named by the arguments, and print the progress."""
    asked = sys.argv[1:] or list(COUNTS)
    written = {problem: list[str]() for problem in COUNTS}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        written[json.loads(line)["problem"]].append(line)
    with Pool() as pool:
        for problem, new in zip(asked, pool.imap(lines, asked), strict=True):
            written[problem] = new
            print(f"{len(new)} vectors of {problem}", file=sys.stderr, flush=True)
    write_atomically(FILE, "".join(f"{line}\n" for problem in COUNTS for line in written[problem]).encode())


if __name__ == "__main__":
    main()
