"""Tables of docs/sweeps.md and docs/sql.md, made from the code: `python -m tests.docs.sweeps` writes them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flows.printing import exactly
from flows.spec.read_grid import RULES
from flows.spec.schema import first_paragraph, schema
from flows.spec.value_schema import RULE_TEXTS
from privcore import METHODS, PROBLEMS, answering
from privcore.parameter import Parameter, Value
from storage.schema import BOOKKEEPING
from storage.sql.views import ENDS_OF_BEST, meanings

PAGE = Path(__file__).parents[2] / "docs" / "sweeps.md"
SQL = PAGE.with_name("sql.md")

Rows = list[tuple[str, ...]]


def written(page: Path) -> str:
    """Return a page with the tables that the code gives."""
    text = page.read_text(encoding="utf-8")
    for name, content in (columns() if page == SQL else tables()).items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        head, rest = text.split(begin)
        _, tail = rest.split(end)
        text = f"{head}{begin}\n{content.strip()}\n\n{end}{tail}"
    return text


def tables() -> Mapping[str, str]:
    """Return the tables by their names, in Markdown."""
    methods = [(kind.name, kind.knobs, vars(kind())) for kind in METHODS if kind.knobs]
    options: Rows = [
        (code(method) if k == 0 else "", code(name), code(exactly(values[name])), *domain(each))
        for method, knobs, values in methods
        for k, (name, each) in enumerate(knobs.items())
    ]
    parameters = {(n, p): None for kind in PROBLEMS for n, p in kind.parameters.items()}
    fields: Rows = [(code(name), *domain(parameter)) for name, parameter in sorted(parameters, key=by_name)]
    return {
        "keys": table(("key", "default", "meaning"), list(keys())),
        "rules": table(
            ("rule", "meaning"),
            [(code(f"{{{rule} = [{numbers}]}}"), RULE_TEXTS[rule]) for rule, numbers in RULES.items()],
        ),
        "problems": "\n".join(problems()),
        "fields": table(("field", "domain", "meaning"), fields),
        "options": table(("method", "option", "default", "domain", "meaning"), options),
    }


def columns() -> Mapping[str, str]:
    """Return the table of the columns that are not fields of problems, in Markdown."""
    rows: Rows = [
        (code(view), code(name), meaning)
        for view, meant in meanings().items()
        for name, meaning in meant.items()
        if name in BOOKKEEPING | {"part", *ENDS_OF_BEST}
    ]
    return {"columns": table(("view", "column", "meaning"), rows)}


def by_name(each: tuple[str, Parameter]) -> tuple[str, str]:
    return each[0], each[1].meaning


def keys() -> Iterator[tuple[str, str, str]]:
    """Yield the keys of a file and of its grids, with default and meaning."""
    whole = schema()
    grid = whole["$defs"]["grid"]
    for name, part in whole["properties"].items():
        yield key(name, part, whole)
        if name == "limits":
            for limit, inner in part["properties"].items():
                yield key(f"limits.{limit}", inner, {"required": []})
        if name == "grid":
            for below, inner in grid["properties"].items():
                yield key(f"grid.{below}", inner, {"required": [f"grid.{n}" for n in grid["required"]]})


def key(name: str, part: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the row of a key."""
    shown = code(name) if name in whole["required"] else f"[{code(name)}]"
    default = code(exactly(part["default"])) if "default" in part else ""
    return shown, default, part["description"]


def problems() -> Iterator[str]:
    """Yield a paragraph for each problem: question, fields and methods."""
    for kind in PROBLEMS:
        defaults = kind.defaults()
        names = [field(name, defaults.get(name), name in kind.stated) for name in kind.parameters]
        yield f"\n`{kind.name}`: {first_paragraph(kind)}\n"
        yield f"- fields: {', '.join(names)}"
        yield f"- methods: {', '.join(code(method.name) for method in answering(kind))}"
    yield ""


def field(name: str, default: Value | None, stated: bool) -> str:
    if default is None:
        return code(name)
    return f"{code(name)} ({exactly(default)}{'; files only' if stated else ''})"


def domain(parameter: Parameter) -> tuple[str, str]:
    """Return the domain and the meaning of a parameter."""
    unit = "" if parameter.unit == "1" else f" {parameter.unit}"
    return f"{code(parameter.domain)}{unit}", parameter.meaning


def table(names: tuple[str, ...], rows: Rows) -> str:
    """Return a table in Markdown."""
    lines = [names, ("---",) * len(names), *rows]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"


def code(text: str) -> str:
    return f"`{text}`"


if __name__ == "__main__":
    for each in (PAGE, SQL):
        each.write_text(written(each), encoding="utf-8")
