"""What the sources in pipeline/ and stages/ import, read from their syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pipeline.run.settings import ROOT


@cache
def source_files() -> list[Path]:
    """Every Python file of pipeline/ and stages/."""
    return sorted([*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "stages").glob("*.py")])


def module_name(path: Path) -> str:
    """`pipeline.store` of pipeline/store/__init__.py, `pipeline.errors` of pipeline/errors.py."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parent_packages(module: str) -> list[str]:
    """The packages that are imported before a module: `a` and `a.b` of `a.b.c`."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def source_file(module: str) -> Path | None:
    """The file of a module of this repository; None for anything else."""
    path = ROOT.joinpath(*module.split("."))
    for source in (path.with_suffix(".py"), path / "__init__.py"):
        if source.is_file():
            return source
    return None


def imported_modules(path: Path, *, for_type_checking: bool = True) -> set[str]:
    """The modules that a file imports anywhere; fairseq through import_fairseq counts.

    for_type_checking: whether imports below `if TYPE_CHECKING` count.
    """
    names: set[str] = set()
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8")), for_type_checking):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            in_repository = {name for name in submodules if source_file(name)}
            names |= in_repository
            if len(in_repository) < len(submodules):  # a name of the module itself
                names.add(node.module)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_fairseq":
            names |= {"fairseq"}
            names |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
    return names


def _nodes(tree: ast.AST, for_type_checking: bool) -> Iterator[ast.AST]:
    yield tree
    for child in ast.iter_child_nodes(tree):
        is_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if for_type_checking or not is_typing:
            yield from _nodes(child, for_type_checking)
