"""Questions of the net with their answers before: drawn problems, training runs, comparisons and lookups.

A question is asked at one door or at all of them. Its answers are an interval for each method or sampler, or
one bracket; a door that says something else than the others adds its own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import privsweep as ps
from flows.answers.sourced import computed
from privcore import Answer, Bracket, Point, evaluate, find, find_problem
from privcore.registry import versions
from storage.table.shipped import shipped_version
from tests.net.doors import Doors, command, options, run, table_shipped, typed

FILE = Path(__file__).with_name("before.jsonl")
"""The questions with the answers of the code before, one a line."""
SAME = 1e-12
"""Relative distance of numbers that count as equal: the last bits of libraries differ between processors."""
MOVED = 2e-4
"""Relative distance from which an end has moved: on another processor a last bit may choose other cells."""
ALLOWED: dict[str, str] = {}
"""Problems and samplers whose answers may differ until the file is written again, each with the reason."""
TOGETHER = "together"
"""Name of the answer of all methods."""


@dataclass(frozen=True)
class Said:
    """An answer: an interval, an estimate or a status.

    Attributes:
        lower: Lower end.
        upper: Upper end.
        by: The methods with their versions, such as `poisson.certified 4`, or the version of a lookup table.
        status: As in `Answer`, like the following attributes.
        confidence: Probability of the interval.
        value: An estimate.
    """

    lower: float
    upper: float
    by: tuple[str, ...]
    status: str = "ok"
    confidence: float = 1.0
    value: float | None = None

    @property
    def rigorous(self) -> bool:
        """Whether the interval is a proof."""
        return self.status == "ok" and self.confidence == 1.0

    def refused(self, new: "Said") -> str | None:
        """Return the difference that forbids another answer in place of this one, or None.

        A proof by the same versions may become narrower; all else is equal. Newer versions are free, but two
        proofs always intersect.
        """
        now = versions()
        methods = [name.split() for name in self.by if " " in name]
        tables = [{name for name in said.by if " " not in name} for said in (self, new)]
        newer = any(now.get(name, 0) > int(number) for name, number in methods) or tables[0] != tables[1]
        proofs = self.rigorous and new.rigorous
        same = all(map(_kept, (self.lower, self.upper), (new.lower, new.upper)))
        reasons = {
            "a method has gone": any(name not in now for name, _ in methods),
            "the two proofs do not intersect": proofs
            and not (_most(self.lower, new.upper) and _most(new.lower, self.upper)),
        }
        if not newer:
            reasons |= {
                f"was {self.status}, is {new.status}": new.status not in ("ok", self.status),
                "the confidence fell": new.confidence < self.confidence,
                "the interval became wider or moved": not (
                    same
                    if not proofs
                    else self.lower <= new.lower * (1.0 + MOVED) and new.upper <= self.upper * (1.0 + MOVED)
                ),
                "the estimate moved": not _kept(self.value or 0.0, new.value or 0.0),
            }
        return next((reason for reason, holds in reasons.items() if holds), None)


def _same(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=SAME)


def _kept(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=MOVED)


def _most(one: float, other: float) -> bool:
    return one <= other or _same(one, other)


def _ends(content: Mapping[str, Any]) -> tuple[float, float]:
    """Return both ends of an answer in JSON, where infinity is a word."""
    return float(content["lower"]), float(content["upper"])


def versioned(*names: str | None) -> tuple[str, ...]:
    """Return methods with their versions, without empty names.

    Example:
        >>> versioned("unamplified.exact", None)
        ('unamplified.exact 1',)
    """
    return tuple(f"{name} {versions()[name]}" for name in dict.fromkeys(filter(None, names)))


def of_answer(name: str, answer: Answer) -> Said:
    """Return the answer of a method."""
    said = answer.lower, answer.upper, versioned(name), str(answer.status), answer.confidence, answer.value
    return Said(*said)


def of_bracket(found: Bracket, *, status: str = "ok") -> Said:
    """Return a bracket, by the methods of its ends."""
    return Said(found.lower, found.upper, versioned(found.lower_by, found.upper_by), status, found.confidence)


def of_enclosure(found: ps.Enclosure) -> Said:
    """Return an answer of the Python door, by the methods of its ends."""
    by = versioned(found.lower_method, found.upper_method)
    return Said(found.lower, found.upper, by, confidence=found.confidence)


@dataclass
class Question:
    """A question with the answers before.

    Attributes:
        door: `methods` (each alone), `command`, `python` or `page` for the methods together; `run`, `compare`
            or `lookup` for all doors of these.
        about: Name of the problem or of the sampler.
        given: Fields of the problem, or arguments of the run.
        said: The answers before, by method or sampler.
    """

    door: str
    about: str
    given: dict[str, Any]
    said: dict[str, Said] = field(default_factory=dict)

    @classmethod
    def read(cls, line: str) -> "Question":
        """Read a question from its line."""
        content = json.loads(line)
        said = {name: Said(**{**said, "by": tuple(said["by"])}) for name, said in content.pop("said").items()}
        return cls(**content, said=said)

    def line(self) -> str:
        """Return the line of the question, without the usual values."""
        usual = {"status": "ok", "confidence": 1.0, "value": None}
        said = {
            name: {
                key: value for key, value in asdict(one).items() if key not in usual or value != usual[key]
            }
            for name, one in self.said.items()
        }
        return json.dumps({**vars(self), "said": said})

    @property
    def key(self) -> str:
        """The question without its answers."""
        return json.dumps([self.door, self.about, self.given])

    def differences(self, now: Mapping[str, Said]) -> list[str]:
        """Return a sentence for each answer now that may not take the place of the one before."""
        why = {
            name: said.refused(now[name]) if name in now else "no answer" for name, said in self.said.items()
        }
        why |= {name: "another door says otherwise" for name in now if name not in self.said}
        return [
            f"{self.door} {self.about} {self.given} {name}: {reason}: {self.said.get(name)} {now.get(name)}"
            for name, reason in why.items()
            if reason
        ]

    def asked(self, doors: Doors) -> dict[str, Said]:
        """Return the answers now."""
        match self.door:
            case "run":
                return self._run(doors)
            case "compare":
                return self._compared()
            case "lookup":
                return self._looked_up(doors)
            case "command" | "page":
                return self._told(doors)
        problem = find_problem(self.about).from_fields(self.given)
        methods = [find(name)() for name in self.said if name != TOGETHER]
        now = {
            each.name: of_answer(each.name, evaluate(Point(problem=problem, method=each))) for each in methods
        }
        if self.door == "python":
            fields: dict[str, Any] = problem.as_fields()
            now[TOGETHER] = of_enclosure(ps.ask(self.about, **fields))
        return now

    def _told(self, doors: Doors) -> dict[str, Said]:
        """Return the answers of all methods by a command or the page server."""
        problem = find_problem(self.about).from_fields(self.given)
        content = (
            command("ask", self.about, *typed(problem)) if self.door == "command" else doors.page(problem)
        )
        rest = "status", "confidence", "value"
        now = {
            one["name"]: Said(*_ends(one), versioned(one["name"]), *map(one.get, rest))
            for one in content["methods"]
            if one["name"] in self.said  # and not a newer method
        }
        by = (name for name, said in now.items() if said.status == "ok")
        now[TOGETHER] = Said(*_ends(content), versioned(*by), *map(content.get, rest))
        late = {name for name, said in now.items() if said.status == "timeout"}  # on a busy machine
        return now | {name: self.said[name] for name in late | {TOGETHER} if late and name in self.said}

    def _run(self, doors: Doors) -> dict[str, Said]:
        said = of_bracket(computed(run(self.about, self.given)).bracket)
        found = doors.run(self.about, self.given)
        others = {name: ends for name, ends in found if ends != (said.lower, said.upper)}
        return {TOGETHER: said} | {name: Said(*ends, by=()) for name, ends in others.items()}

    def _compared(self) -> dict[str, Said]:
        now = {name: of_enclosure(found) for name, found in ps.compare(**self.given).items()}
        rows = {row["sampling"]: row for row in command("compare", *options(self.given))["rows"]}
        others = {name: (row["lower"], row["upper"]) for name, row in rows.items() if row["problem"]}
        same = {name: (said.lower, said.upper) for name, said in now.items()}
        return now | {f"command {n}": Said(*ends, by=()) for n, ends in others.items() if same.get(n) != ends}

    def _looked_up(self, doors: Doors) -> dict[str, Said]:
        problem = find_problem(self.about).from_fields(self.given)
        (_, first), *others = doors.looked_up(problem, crc32(self.key.encode()) % 3)
        with table_shipped():
            by = (shipped_version(),)
        found = {TOGETHER: first} | {name: ends for name, ends in others if ends != first}
        return {name: Said(*(ends or (0.0, math.inf)), by=by) for name, ends in found.items()}


def before() -> list[Question]:
    """Return all questions with the answers before."""
    return [Question.read(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
