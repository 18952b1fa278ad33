"""Provenance of the numbers of a report: methods and their theorems, code, packages, machines, times."""

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version

from flows.answers.show import condition_lines
from flows.reports.document import Heading, Paragraph, TextTable, counted
from flows.reports.stored import StoredAnswer
from privcore import find, find_problem
from privcore.answer import tables_of
from privcore.errors import PrivsweepError
from storage import SCHEMA_VERSION
from storage.errors import StoreError
from storage.schema import NOT_RECOMPUTED, commit_text, object_in

_MOST = 4
"""Most names in a line."""


def provenance(
    answers: Sequence[StoredAnswer], *, degraded: bool = False
) -> list[Heading | TextTable | Paragraph]:
    """Return the last section of a report.

    Args:
        answers: All stored rows that the report uses.
        degraded: Whether damaged parts of the store were skipped.
    """
    rows = [answer.row for answer in answers]
    methods = sorted({(row["method"], row["method_version"]) for row in rows})
    told = [[name, str(number), *_claims(name)] for name, number in methods]
    code = sorted({commit_text(row["git_commit"], row["git_dirty"]) for row in rows})
    packages = sorted({row["versions"] for row in rows})
    times = [row["finished_at"] for row in rows]
    origin = [["release of this report", version("privsweep")], ["schema of the store", str(SCHEMA_VERSION)]]
    origin += [["sweeps", ", ".join(sorted({row["sweep"] for row in rows}))]]
    origin += [["commit", each] for each in code]
    origin += [["packages", _packages(text)] for text in packages]
    origin += [["hosts", ", ".join(sorted({row["host"] for row in rows}))]]
    if times:
        first, last = (f"{when:%Y-%m-%d %H:%M} UTC" for when in (min(times), max(times)))
        origin += [["computed", first if first == last else f"{first} to {last}"]]
    told_of = (
        f"This report shows {counted(len(answers), 'stored row')}. "
        "Numbers that were computed for the report itself are named as such."
    )
    if degraded:
        told_of += (
            " Damaged and missing parts of the store were skipped, so answers may be missing from this "
            "report; `privsweep verify` lists these parts."
        )
    return [
        Heading(text="Origin of the numbers"),
        Paragraph(text=told_of),
        *_conditions(answers),
        *_imports(answers),
        TextTable(title="Methods", names=["method", "version", "claims", "reference"], rows=told),
        TextTable(title="Origin", names=["item", "value"], rows=origin),
    ]


def _conditions(answers: Sequence[StoredAnswer]) -> list[Paragraph]:
    """Return a paragraph for each neighbouring relation and each assumption behind the answers."""
    found: dict[tuple[str, str], None] = {}
    for name in dict.fromkeys(answer.problem for answer in answers):
        kind = find_problem(name)
        for fields in (answer.fields for answer in answers if answer.problem == name):
            found.update(dict.fromkeys(condition_lines(kind.from_fields(fields))))
    said = [Paragraph(text=f"{name.capitalize()}: {text}.") for name, text in found]
    rest = len(said) - _MOST
    return [*said[:_MOST], *([Paragraph(text=f"And {rest} more assumptions.")] if rest > 0 else [])]


def _imports(answers: Sequence[StoredAnswer]) -> list[Paragraph]:
    """Return a paragraph about the rows of each published table."""
    counts = Counter(table for answer in answers for table in tables_of(answer.method))
    return [
        Paragraph(text=f"Imported: {counted(n, 'row')} of the lookup table {table}, {NOT_RECOMPUTED}.")
        for table, n in sorted(counts.items())
    ]


def source(answers: Sequence[StoredAnswer]) -> str:
    """Return a line for each figure of a report, by which a single figure can be traced.

    Args:
        answers: All stored rows that the report uses.
    """
    rows = [answer.row for answer in answers]
    sweeps = sorted({str(row["sweep"]) for row in rows})
    commits = sorted({commit_text(row["git_commit"][:12], row["git_dirty"]) for row in rows})
    last = max((f"{row['finished_at']:%Y-%m-%d}" for row in rows), default="never")
    told = [f"sweep {_some(sweeps)}", f"commit {_some(commits)}"]
    tables = sorted(tables_of(*(answer.method for answer in answers)))
    told += [f"{NOT_RECOMPUTED} from {_some(tables)}"] if tables else []
    return ", ".join([f"privsweep {version('privsweep')}", *told, f"computed until {last}"])


def _some(words: Sequence[str]) -> str:
    """Return the words in a line, abbreviated if there are many."""
    return (
        " ".join(words) if len(words) <= _MOST else f"{' '.join(words[:_MOST])} and {len(words) - _MOST} more"
    )


def _claims(name: str) -> list[str]:
    """Return the direction and the reference of a method, or a note if it is unknown to this release."""
    try:
        method = find(name)
    except PrivsweepError:
        return ["", "unknown to this release"]
    return [method.direction.value, method.reference]


def _packages(text: str) -> str:
    """Return the versions of packages in a line."""
    try:
        found = object_in(text)
        return ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
    except StoreError:
        return text[:60]
