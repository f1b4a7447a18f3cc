"""Mutants: copies of a source file with one small fault, as cosmic-ray makes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

_ORDER = "(Eq|NotEq|Lt|LtE|Gt|GtE)"
# Of two operators with one sign, the opposite one alone: most others end in a TypeError.
_KEPT = re.compile(
    r"core/("
    r"ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Mul|Pow_Mul"
    r"|LShift_RShift|RShift_LShift|BitOr_BitAnd|BitAnd_BitOr)"
    rf"|ReplaceComparisonOperator_({_ORDER}_{_ORDER}|Is_IsNot|IsNot_Is)"
    r"|ReplaceUnaryOperator_Delete_\w+|Replace(True|False|And|Or|Break|Continue)\w+"
    r"|AddNot|NumberReplacer|ZeroIterationForLoop|RemoveDecorator|ExceptionReplacer)"
)
Place = tuple[int, int]


@dataclass(frozen=True, order=True)
class Mutant:
    """The fault that an operator of cosmic-ray makes at its nth occurrence; line and column of it.

    `module` is the file's dotted name.
    """

    path: Path
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def module(self) -> str:
        return ".".join(self.path.with_suffix("").parts)

    def source(self) -> str | None:
        """The text of the file with its fault; None where Python cannot compile that."""
        operator = get_operator(self.operator)()
        text = mutate_code(self.path.read_text(encoding="utf-8"), operator, self.occurrence)
        try:
            compile(text or "", self.path.name, "exec")
        except SyntaxError:
            return None
        return text


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a file, but of annotations and `strict=`, which decide nothing as it runs.

    The path is relative to the repository, which is the current folder.
    """
    text = path.read_text(encoding="utf-8")
    idle = list(_idle_places(ast.parse(text)))
    nodes = list(ast_nodes(get_ast(text)))
    for name in filter(_KEPT.fullmatch, operator_names()):
        operator = get_operator(name)()
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(positions):
            if not any(first <= (line, column) < last for first, last in idle):
                yield Mutant(path, line, column, name, occurrence)


def _idle_places(tree: ast.Module) -> Iterator[tuple[Place, Place]]:
    for node in ast.walk(tree):
        parts: list[Any] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.keyword) and node.arg == "strict":
            parts.append(node.value)
        for part in filter(None, parts):
            yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


@cache
def function_bodies(path: Path) -> list[range]:
    """The lines of every function's body, inner functions after outer ones."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, functions)]
    return [range(one.body[0].lineno, (one.end_lineno or 0) + 1) for one in found]
