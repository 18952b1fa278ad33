"""Stored intervals with a confidence below 1, which lookups leave out because they are not proofs."""

import shlex
from dataclasses import dataclass
from typing import Any

from flows.answers.show import Aside, bracket_text
from privcore import Bracket, Problem
from privcore.registry import used_versions
from storage import QueryError, Store
from storage.marks import IMPORTED, origin_text
from storage.schema import problem_id
from storage.shipped import shipped_store
from storage.views import current, view_name

_NARROWEST = "if(lower = upper, 0, upper - lower), lower desc, upper, confidence desc, method::varchar"
"""Order of intervals: by width, and of those without an upper end by the lower end."""


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The stored intervals of one problem.

    Attributes:
        problem: The problem.
        count: Number of intervals, >= 1.
        narrowest: The narrowest of them.
        command: Command that prints all of them.
    """

    problem: Problem
    count: int
    narrowest: Bracket
    command: str

    @property
    def sentence(self) -> str:
        """The number of intervals, the narrowest, and the command for all, without a full stop."""
        several = self.count > 1
        text = f"{self.count} stored interval{'s' * several} with a confidence below 1 "
        text += f"{'are' if several else 'is'} left out; the narrowest: "
        origin = ", ".join(filter(None, (self.narrowest.lower_by, origin_text(self.narrowest.imported))))
        text += f"{bracket_text(self.problem, self.narrowest)} ({origin})"
        return f"{text}; to print them: `{self.command}`"

    def aside(self) -> Aside:
        """Return the intervals as a line after an answer."""
        ends = {name: getattr(self.narrowest, name) for name in ("lower", "upper", "confidence")}
        content: dict[str, Any] = {
            "count": self.count,
            "narrowest": {
                **ends,
                "method": self.narrowest.lower_by,
                "imported": list(self.narrowest.imported),
            },
            "command": self.command,
        }
        return Aside(key="intervals", content=content, text=f"intervals  {self.sentence}")


def intervals(store: Store, problem: Problem, option: str | None) -> Intervals | None:
    """Return the stored intervals of exactly this problem, or None.

    Args:
        store: Opened with `missing_ok`; if it is missing, the shipped table is read, as `privsweep sql` does.
        problem: The question.
        option: Name of the store, or None for the default.
    """
    read = store if store.exists else shipped_store()
    if read is None:
        return None
    columns = (
        f"lower, upper, confidence, method::varchar as method, {IMPORTED} as source, {current()} as newest"
    )
    chosen = f"from {view_name(problem.name)} where problem_id = '{problem_id(problem)}' and confidence < 1"
    try:
        found = read.sql(f"select {columns} {chosen} order by {_NARROWEST}").to_pylist()
    except QueryError:  # a problem without methods has no view
        return None
    rows = [row for row in found if row["newest"]]
    if not rows:
        return None
    for name in sorted({row["method"] for row in found if not row["newest"]}):
        chosen += f" and not (method = '{name}' and method_version < {used_versions()[name]})"
    by, source = rows[0]["method"], rows[0]["source"]
    ends = {name: rows[0][name] for name in ("lower", "upper", "confidence")}
    at = "" if option is None else f" --store {shlex.quote(option)}"
    return Intervals(
        problem=problem,
        count=len(rows),
        narrowest=Bracket(**ends, lower_by=by, upper_by=by, imported=(source,) if source else ()),
        command=f'privsweep sql "{chosen}"{at}',
    )
