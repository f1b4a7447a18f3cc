"""Draw docs/architecture.svg from the imports of the code: `python docs/architecture.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"
STAGES = "stages"
# The harness and the single modules of pipeline/, which every package may import.
HARNESS = ("run", "tracking")
BASE = ", ".join([*HARNESS, *sorted(path.stem for path in (ROOT / "pipeline").glob("[!_]*.py"))])
_WIDTH, _HEIGHT, _COLUMN, _ROW, _MARGIN = 150, 40, 190, 90, 20
_STYLE = (
    "rect { fill: #eef2f7; stroke: #33475b; rx: 4px } line { stroke: #33475b } "
    "text { font: 14px sans-serif; fill: #1b2733; text-anchor: middle } path { fill: #33475b }"
)


def picture() -> str:
    """Return the SVG: one box per package, one arrow per import that others do not imply."""
    graph = imports()
    rows = _rows(graph)
    place = _places(rows, graph)
    width = max(x for x, _ in place.values()) + _WIDTH + _MARGIN
    arrows = [
        _arrow(place[package], place[other], straight=other == BASE)
        for package in sorted(graph)
        for other in sorted(graph[package])
        if not any(other in _reached(graph, between) for between in graph[package] - {other})
    ]
    boxes = [
        _box(package, *place[package], _WIDTH) for row in rows for package in sorted(row - {BASE})
    ]
    boxes.append(_box(BASE, _MARGIN, place[BASE][1], width - 2 * _MARGIN))
    height = _MARGIN * 2 + _ROW * (len(rows) - 1) + _HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">'
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    title = "<title>Packages of the code and their imports</title>"
    parts = [head, title, f"<style>{_STYLE}</style>", marker, *arrows, *boxes, "</svg>"]
    return "\n".join(parts) + "\n"


def imports() -> dict[str, set[str]]:
    """Return the packages that each package imports; those of the base are omitted."""
    graph: dict[str, set[str]] = {}
    sources = [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "stages").glob("*.py")]
    for source in sources:
        own = _package(".".join(source.relative_to(ROOT).with_suffix("").parts))
        imported = {_package(module) for module in _modules(source)} - {own, ""}
        if own:
            graph.setdefault(own, set()).update(imported if own != BASE else ())
    return graph


def _modules(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _package(module: str) -> str:
    """Return the package of a module, or an empty string for modules of other projects."""
    top, *rest = module.split(".")
    if top == "stages":
        return STAGES
    if top != "pipeline" or rest[:1] in ([], ["__init__"]):
        return ""
    is_base = rest[0] in HARNESS or not (ROOT / "pipeline" / rest[0]).is_dir()
    return BASE if is_base else rest[0]


def _reached(graph: dict[str, set[str]], package: str) -> set[str]:
    return set().union(*({other} | _reached(graph, other) for other in graph[package]))


def _rows(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sort packages into rows by their longest path from the top, so that all arrows point down."""
    depth: dict[str, int] = {}

    def sink(package: str, at: int) -> None:
        if depth.get(package, -1) < at:
            depth[package] = at
            for other in graph[package]:
                sink(other, at + 1)

    for package in graph:
        sink(package, 0)
    return [{r for r in depth if depth[r] == at} for at in range(max(depth.values()) + 1)]


def _places(rows: list[set[str]], graph: dict[str, set[str]]) -> dict[str, tuple[float, float]]:
    """Return the upper left corner of each box, centred below its importers without overlaps."""
    place: dict[str, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        wanted = {
            package: mean([place[up][0] for up in place if package in graph[up]] or [0])
            for package in row
        }
        ordered = sorted(row, key=lambda package: (wanted[package], package))
        middle = mean(wanted.values())
        for number, package in enumerate(ordered):
            x = middle + (number - (len(row) - 1) / 2) * _COLUMN
            place[package] = (x, _MARGIN + depth * _ROW)
    left = min(x for x, _ in place.values()) - _MARGIN
    return {package: (round(x - left), y) for package, (x, y) in place.items()}


def _arrow(start: tuple[float, float], end: tuple[float, float], *, straight: bool) -> str:
    x1, y1 = start[0] + _WIDTH / 2, start[1] + _HEIGHT
    x2, y2 = x1 if straight else end[0] + _WIDTH / 2, end[1]
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" marker-end="url(#tip)"/>'


def _box(package: str, x: float, y: float, width: float) -> str:
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{_HEIGHT}"/>'
    label = f'<text x="{x + width / 2:g}" y="{y + 25:g}">{escape(package)}</text>'
    return box + label


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
