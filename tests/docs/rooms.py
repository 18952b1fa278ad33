"""Draws which rooms import which: folders and files of `flows` and `privcore`, `tasks` and `storage` whole.

`python -m tests.docs.rooms docs/rooms-after.svg` draws the tree that it is run in. docs/rooms-before.svg was
drawn by this script in a checkout of the commit before the packages were divided into rooms.
"""

import sys
from collections import defaultdict
from pathlib import Path

import grimp

PACKAGES = {"flows": "#dbe9fb", "tasks": "#fde9cf", "storage": "#e2f3dc", "privcore": "#f3e0f2"}
DIVIDED = ("flows", "privcore")
WIDTH, FLOOR, LETTER, HEIGHT, GAP = 960, 44, 5.6, 16, 10

Arrows = frozenset[tuple[str, str]]


def arrows() -> Arrows:
    """Return the pairs of rooms whose first imports the second."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    pairs = (
        (room(module), room(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )
    return frozenset((start, to) for start, to in pairs if start != to)


def room(module: str) -> str:
    """Return the room of a module, such as `flows.runs` of `flows.runs.plan`."""
    package, _, rest = module.partition(".")
    return package if package not in DIVIDED or not rest else f"{package}.{rest.partition('.')[0]}"


def reach(pairs: Arrows) -> dict[str, set[str]]:
    """Return for each room all that it imports, directly or by way of others."""
    reached = {name: {to for start, to in pairs if start == name} for pair in pairs for name in pair}
    for middle in sorted(reached):
        for far in reached.values():
            if middle in far:
                far.update(reached[middle])
    return reached


def circles(pairs: Arrows) -> list[frozenset[str]]:
    """Return the sets of rooms that import one another, directly or by way of others."""
    far = reach(pairs)
    found = {frozenset(to for to in far[name] if name in far[to]) for name in far if name in far[name]}
    return sorted(found, key=min)


def direct(pairs: Arrows) -> Arrows:
    """Return the arrows to rooms that are not imported by way of another one as well."""
    far = reach(pairs)
    return frozenset(
        (start, to)
        for start, to in pairs
        if not any(
            to in far[via] and via not in far[to] and start not in far[via]
            for first, via in pairs
            if first == start
        )
    )


def floors(pairs: Arrows) -> dict[str, int]:
    """Return the floor of each room: one above the highest that it imports, a circle being on one floor."""
    home = {name: min(circle) for circle in circles(pairs) for name in circle}
    below: dict[str, set[str]] = defaultdict(set)
    for start, to in pairs:
        below[home.get(start, start)] |= {home.get(to, to)} - {home.get(start, start)}
    level: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in level:
            level[name] = 1 + max(map(height, sorted(below[name])), default=-1)
        return level[name]

    return {name: height(home.get(name, name)) for pair in pairs for name in pair}


def summary(pairs: Arrows, package: str) -> str:
    """Return the size of the graph inside a package, in words."""
    rooms = {name for pair in pairs for name in pair if name.startswith(f"{package}.")}
    inside = frozenset(pair for pair in pairs if rooms.issuperset(pair))
    count = len(circles(inside))
    return (
        f"{package}: {len(rooms)} rooms on {max(floors(inside).values()) + 1} floors, {len(inside)} arrows, "
        f"{count or 'no'} circle{'s' if count > 1 else ''}"
    )


def placed(pairs: Arrows) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the middle of each room's box, and the height of the picture."""
    level = floors(pairs)
    shelves: dict[int, list[str]] = defaultdict(list)
    for name in sorted(level, key=lambda name: (list(PACKAGES).index(name.partition(".")[0]), name)):
        shelves[level[name]].append(name)
    places: dict[str, tuple[float, float]] = {}
    y = 48.0
    for floor in sorted(shelves, reverse=True):
        rows: list[list[str]] = [[]]
        for name in shelves[floor]:
            if sum(map(width, [*rows[-1], name])) + GAP * len(rows[-1]) > WIDTH - 2 * GAP:
                rows.append([])
            rows[-1].append(name)
        for row in rows:
            spare = WIDTH - 2 * GAP - sum(map(width, row))
            x = GAP + spare / (len(row) + 1)
            for name in row:
                places[name] = (x + width(name) / 2, y)
                x += width(name) + spare / (len(row) + 1)
            y += HEIGHT + 6
        y += FLOOR - HEIGHT - 6
    return places, y


def width(name: str) -> float:
    """Return the width of a room's box."""
    return LETTER * len(label(name)) + 10


def label(name: str) -> str:
    """Return the text in a room's box; its colour says the package."""
    return name if "." not in name else name.partition(".")[2]


def drawn(pairs: Arrows) -> str:
    """Return the picture as SVG; an import that another room makes possible too is a thin line."""
    places, height = placed(pairs)
    circled = {name for circle in circles(pairs) for name in circle}
    plain = direct(pairs)
    back = frozenset(pair for pair in pairs if circled.issuperset(pair))
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"',
        f'viewBox="0 0 {WIDTH} {height:.0f}">',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
        f'<text x="{GAP}" y="20" font-size="12">{"; ".join(summary(pairs, p) for p in DIVIDED)}</text>',
    ]
    for some, style in (
        (pairs - plain - back, 'stroke="#ccc" stroke-width="0.5"'),
        (plain - back, 'stroke="#666" stroke-width="1"'),
        (back, 'stroke="#c00" stroke-width="1.5"'),
    ):
        ends = [(places[start], places[to]) for start, to in sorted(some)]
        path = "".join(f"M{x:.0f} {y:.0f}L{u:.0f} {v:.0f}" for (x, y), (u, v) in ends)
        lines.append(f'<path d="{path}" {style}/>')
    for name, (x, y) in sorted(places.items()):
        w = width(name)
        lines.append(
            f'<rect x="{x - w / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{w:.0f}" height="{HEIGHT}" rx="3" '
            f'fill="{PACKAGES[name.partition(".")[0]]}" stroke="{"#c00" if name in circled else "#666"}"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" font-size="10" text-anchor="middle">{label(name)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn(arrows()))
