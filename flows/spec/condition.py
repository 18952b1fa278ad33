"""Conditions that exclude points of a grid, such as `participations <= steps`: checked, never executed."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from privcore.errors import DomainError, unknown
from privcore.parameter import Choice, Parameter, Text, Value

LONGEST = 300  # characters: the parser is recursive, and conditions written by hand are shorter

Evaluate = Callable[[Mapping[str, Any]], Any]

# Everything is computed in floats, so that no expression can build an integer of a million digits.
_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: math.pow,
}
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A condition on the fields of a problem.

    Example:
        >>> from privcore import find_problem
        >>> fields = find_problem("unamplified-epsilon").parameters
        >>> condition("participations <= steps", fields).holds({"participations": 2, "steps": 1})
        False
    """

    text: str
    _evaluate: Evaluate = field(compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """Names of the fields that the condition reads."""
        tree = ast.parse(self.text.strip(), mode="eval")
        return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))

    def holds(self, fields: Mapping[str, Value]) -> bool:
        """Return whether these fields satisfy the condition.

        Raises:
            DomainError: The condition cannot be computed: a division by zero, an overflow.
        """
        floats = {name: v if isinstance(v, str) else float(v) for name, v in fields.items()}
        try:
            return bool(self._evaluate(floats))
        except (ArithmeticError, ValueError) as error:
            at = ", ".join(f"{name}={value}" for name, value in fields.items())
            raise DomainError(f"Expected a condition that can be computed at {at}, got {error}.") from None

    def excludes(self, fields: Mapping[str, Value]) -> bool:
        """Return whether these fields do not satisfy the condition; False if it needs further fields.

        Raises:
            DomainError: As `holds` does.
        """
        try:
            return not self.holds(fields)
        except KeyError:
            return False


def condition(text: str, parameters: Mapping[str, Parameter]) -> Condition:
    """Return the condition that the text states.

    Args:
        text: Comparisons of names, numbers and quoted words, joined by and, or, not; + - * / // % ** on
            numbers. Nothing else.
        parameters: The names that may occur.

    Raises:
        DomainError: The text is not a valid condition.
        UnknownNameError: A name is not a parameter.
    """
    if len(text) > LONGEST:
        raise DomainError(f"Expected a condition of at most {LONGEST} characters, got {len(text)}.")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DomainError(f"Expected a condition such as participations <= steps, got {text!r}.") from None
    kind, evaluate = _translate(tree.body, parameters)
    if kind != "truth":
        raise DomainError(f"Expected a condition that is true or false, got the {kind} {text!r}.")
    return Condition(text, evaluate)


def _translate(  # noqa: PLR0911  one return for each kind of node
    node: ast.expr, parameters: Mapping[str, Parameter]
) -> tuple[str, Evaluate]:
    """Return the kind of a node (number, text or truth) and the function that computes it."""
    match node:
        case ast.Constant(value=str() as word):
            return "text", lambda _: word
        case ast.Constant(value=(int() | float()) as x) if not isinstance(x, bool) and abs(x) <= 1e308:
            constant = float(x)
            return "number", lambda _: constant
        case ast.Name(id=name):
            if name not in parameters:
                raise unknown("name", name, list(parameters))
            return "text" if isinstance(parameters[name], Choice | Text) else "number", operator.itemgetter(
                name
            )
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            (f,) = _of_kind("truth", [inner], parameters)
            return "truth", lambda fields: not f(fields)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            (f,) = _of_kind("number", [inner], parameters)
            return "number", lambda fields: -f(fields)
        case ast.BoolOp(op=joined, values=values):
            parts = _of_kind("truth", values, parameters)
            decide = all if isinstance(joined, ast.And) else any
            return "truth", lambda fields: decide(part(fields) for part in parts)
        case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in _ARITHMETIC:
            f, g = _of_kind("number", [left, right], parameters)
            combine = _ARITHMETIC[type(symbol)]
            return "number", lambda fields: combine(f(fields), g(fields))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in _COMPARISONS for op in ops
        ):
            kind, _ = _translate(left, parameters)
            operands = _of_kind("number" if kind == "truth" else kind, [left, *others], parameters)
            tests = [_COMPARISONS[type(op)] for op in ops]
            return "truth", lambda fields: _chain(tests, [f(fields) for f in operands])
    raise DomainError(f"Expected only names, numbers, words and comparisons, got {ast.unparse(node)[:60]!r}.")


def _of_kind(kind: str, nodes: list[ast.expr], parameters: Mapping[str, Parameter]) -> list[Evaluate]:
    """Return the functions of nodes that must all be of one kind."""
    functions = []
    for node in nodes:
        found, function = _translate(node, parameters)
        if found != kind:
            raise DomainError(f"Expected a {kind}, got the {found} {ast.unparse(node)[:60]!r}.")
        functions.append(function)
    return functions


def _chain(tests: list[Callable[[Any, Any], Any]], values: list[Any]) -> bool:
    """Return whether `a < b <= c` holds at every link."""
    return all(test(a, b) for test, a, b in zip(tests, values, values[1:], strict=False))
