"""Numerical core: each bound is a method, and each answer is an enclosure with its proof."""

from privcore.answer import Answer, Bracket, Interval, Status, intersect
from privcore.errors import DomainError, ExitCode, LimitError, PrivsweepError, UnknownNameError
from privcore.method import Cost, Direction, Method
from privcore.point import Point, evaluate
from privcore.problem import Problem, Trend
from privcore.registry import METHODS, PROBLEMS, answering, find, find_problem, methods_for

__all__ = [
    "METHODS",
    "PROBLEMS",
    "Answer",
    "Bracket",
    "Cost",
    "Direction",
    "DomainError",
    "ExitCode",
    "Interval",
    "LimitError",
    "Method",
    "Point",
    "PrivsweepError",
    "Problem",
    "Status",
    "Trend",
    "UnknownNameError",
    "answering",
    "evaluate",
    "find",
    "find_problem",
    "intersect",
    "methods_for",
]
