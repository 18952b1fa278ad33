"""The state of a store is in its object: no module of the package keeps state between calls."""

import ast
from pathlib import Path

import pytest

FILLED_LATER = {"dict", "list", "set", "defaultdict", "Counter", "OrderedDict", "deque", "WeakKeyDictionary"}


def is_filled_later(value: ast.expr | None) -> bool:
    """Whether a value is an empty collection."""
    match value:
        case ast.Dict(keys=contents) | ast.List(elts=contents) | ast.Set(elts=contents):
            return not contents
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in FILLED_LATER
    return False


@pytest.mark.parametrize("file", sorted(Path("storage").glob("*.py")), ids=lambda file: file.stem)
def test_no_module_fills_a_collection_or_sets_a_name_of_its_own(file: Path, repository: Path) -> None:
    tree = ast.parse((repository / file).read_text())
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Global)] == []
    names = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    assert [ast.unparse(node) for node in names if is_filled_later(node.value)] == []
