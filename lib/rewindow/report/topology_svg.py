"""A topology as an SVG drawing: topics, nodes with their stores, and a frame around each sub-topology.

Boxes are arranged in layers, so that boxes do not overlap and lines do not cross boxes. The steps are the standard ones of
layered drawing: layers by the longest path, an order within each layer that avoids crossings, and positions near the neighbours.
The same topology always gets the same drawing.

Colours are attributes, for viewers that ignore style sheets. The style sheet replaces the colours for readers who prefer dark
ones. The drawing has its own background, so it is readable on any page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import Any, Literal
from unicodedata import east_asian_width

import svg

from rewindow.errors import visible_lines

MARGIN, PAD, ROW_GAP, HEAD = 18.0, 10.0, 34.0, 26.0
"""Space (pixels): around the drawing, within a box, between two layers, and for the title of a sub-topology."""
GAP, LINE_WIDTH = 22.0, 10.0
"""Space between two boxes of a layer, and width of a line that passes a layer (pixels)."""
LINE, TITLE, TEXT = 16.0, 12, 11
"""The height of a line of text, the font size of titles, and the font size of other text (pixels)."""
_LETTER = 0.62
"""The width of a character, as a share of the font size, in the widest of the common monospaced fonts."""
_LONGEST, _MOST_LINES = 44, 3
"""A description is shown with at most this many characters per line and at most this many lines. The tooltip has all of it."""
_TIP = 8.0
"""The length of the tip of an arrow."""
_TURNS = 12
"""How many passes improve the order within layers, and how many improve the positions."""

_FONT = "ui-monospace, 'Liberation Mono', Menlo, Consolas, monospace"
_LIGHT = {
    "ground": ("#ffffff", ""),
    "frame": ("#f5f7fa", "#c9d1db"),
    "topic": ("#e3eefa", "#2a6f97"),
    "node": ("#ffffff", "#7b8794"),
    "output": ("#e4f3e8", "#2f7d4f"),
    "between": ("#fdf1e3", "#b4540a"),
    "store": ("#efe8f5", "#8e5ea2"),
}
_DARK = {
    "ground": ("#12161c", ""),
    "frame": ("#1b222b", "#3a4655"),
    "topic": ("#17304a", "#5fa8d3"),
    "node": ("#12161c", "#8a97a6"),
    "output": ("#17301f", "#7fcf9f"),
    "between": ("#3a2813", "#f0a35e"),
    "store": ("#2e2438", "#c39ad6"),
}
_INK, _SOFT, _ARROW = ("#1b2330", "#e4e9f0"), ("#4a5562", "#aab6c3"), ("#52606d", "#a9b4bf")
"""The colours of text, secondary text and arrows, each as a pair: for light and for dark screens."""

Edge = tuple[str, str]
"""The names of two connected boxes, the upper box first."""


@dataclass(frozen=True, slots=True)
class _Pass:
    """The point at which an edge passes a layer between its two boxes."""

    edge: Edge
    layer: int


_Item = str | _Pass
"""An item of a layer: the name of a box, or the point at which an edge passes the layer."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its kind, its title, the lines of its description, its stores, and its sub-topology (``part``)."""

    name: str
    kind: str
    """``topic``, ``node``, ``output``, or ``between`` for an internal topic."""
    title: str
    lines: Sequence[str]
    stores: Sequence[str]
    tooltip: str
    part: int

    @property
    def width(self) -> float:
        """The width of the box."""
        texts = [_text_width(self.title, TITLE), *(_text_width(line, TEXT) for line in self.lines)]
        return max([60.0, *texts, *(_text_width(store, TEXT) + 12 for store in self.stores)]) + 2 * PAD

    @property
    def height(self) -> float:
        """The height of the box."""
        return 2 * PAD + LINE * (1 + len(self.lines)) + (LINE + 4) * len(self.stores) - 4


@dataclass(frozen=True, slots=True)
class Picture:
    """A topology with the positions of all boxes and edges."""

    parts: Sequence[int]
    boxes: Mapping[str, Box]
    edges: Sequence[Edge]
    between: Sequence[Edge]
    """The edges from internal topics to their readers."""
    layers: Mapping[str, int]
    """The layer of each box, from 0 at the top."""
    centres: Mapping[_Item, float]
    """The x coordinate of the centre of each box, and of each point at which an edge passes a layer."""
    tops: Sequence[float]
    heights: Sequence[float]
    """``tops`` are the y coordinates at which the layers begin, ``heights`` the heights of the layers."""
    width: float
    height: float

    def top(self, name: str) -> float:
        """Return the y coordinate of the upper edge of a box."""
        layer = self.layers[name]
        return self.tops[layer] + (self.heights[layer] - self.boxes[name].height) / 2

    def bottom(self, name: str) -> float:
        """Return the y coordinate of the lower edge of a box."""
        return self.top(name) + self.boxes[name].height

    def frame(self, part: int) -> tuple[float, float]:
        """Return the y coordinates of the upper and the lower edge of a sub-topology's frame."""
        layers = [self.layers[box.name] for box in self.boxes.values() if box.part == part]
        return self.tops[min(layers)] - HEAD, self.tops[max(layers)] + self.heights[max(layers)] + PAD

    def points(self, edge: Edge) -> list[tuple[float, float, float]]:
        """Return the straight parts of an edge, from top to bottom: x, and the y coordinates of both ends of the part."""
        upper, lower = edge
        begin, end = self.layers[upper], self.layers[lower]
        passed = [
            (self.centres[_Pass(edge, layer)], self.tops[layer], self.tops[layer] + self.heights[layer])
            for layer in range(begin + 1, end)
        ]
        leaves = (self.centres[upper], self.bottom(upper), self.tops[begin] + self.heights[begin])
        return [leaves, *passed, (self.centres[lower], self.tops[end], self.top(lower))]


def topology_svg(title: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the drawing of a topology, as the text of an SVG file. ``parts``: the sub-topologies as `explain` describes them."""
    shown = picture(parts)
    drawn: list[svg.Element] = []
    for part in shown.parts:
        top, bottom = shown.frame(part)
        drawn.append(_rect("frame", MARGIN / 2, top, shown.width - MARGIN, bottom - top, 6))
        drawn.append(_text(MARGIN, top + 17, _head(part), TEXT, _SOFT, anchor="start"))
    for edge in (*shown.edges, *shown.between):
        drawn += _arrow(shown.points(edge), is_dashed=edge in shown.between)
    drawn += [_drawn(box, shown.centres[box.name], shown.top(box.name)) for box in shown.boxes.values()]
    drawing = svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, round(shown.width, 1), round(shown.height, 1)),
        width=round(shown.width, 1),
        height=round(shown.height, 1),
        style="max-width:100%;height:auto",
        elements=[
            svg.Title(text=escape(title)),
            svg.Style(text=_dark_style()),
            _rect("ground", 0, 0, shown.width, shown.height, 6),
            *drawn,
        ],
        extra={"role": "img", "aria-label": escape(title)},
    )
    return visible_lines(drawing.as_str())


def picture(parts: Sequence[Mapping[str, Any]]) -> Picture:
    """Return the boxes and edges with their positions. ``parts``: the sub-topologies as `explain` describes them."""
    nodes = [node for part in parts for node in part["nodes"]]
    read = {node["topic"] for node in nodes if node["topic"] is not None and not node["parents"]}
    internal = {node["topic"] for node in nodes if node["topic"] in read and node["parents"]}
    boxes = {node["node"]: _box(node, part["sub_topology"], internal) for part in parts for node in part["nodes"]}
    edges = [(parent, node["node"]) for node in nodes for parent in node["parents"]]
    writers = {node["topic"]: node["node"] for node in nodes if node["topic"] in internal and node["parents"]}
    readers = [node for node in nodes if node["topic"] in internal and not node["parents"]]
    between = [(writers[node["topic"]], node["node"]) for node in readers]
    layers = _layers(boxes.values(), [*edges, *between])
    centres, width = _centres(boxes, layers, [*edges, *between])
    numbers = [part["sub_topology"] for part in parts]
    width = max([width, *(_text_width(_head(number), TEXT) for number in numbers)]) + 2 * (MARGIN + PAD)
    tops, heights = _rows(boxes.values(), layers)
    height = (tops[-1] + heights[-1] if tops else 0.0) + PAD + MARGIN
    return Picture(numbers, boxes, edges, between, layers, centres, tops, heights, width, height)


def _box(node: Mapping[str, Any], part: int, internal: set[str]) -> Box:
    topic, does = node["topic"], node["does"]
    if topic is None:
        kind, title, text = "node", node["node"], does
    else:
        kind = "between" if topic in internal else "output" if node["parents"] else "topic"
        title, text = topic, "internal topic" if kind == "between" else kind
    stores = [f"store {name}" for name in node["stores"]]
    return Box(node["node"], kind, title, _description(text), stores, f"{node['node']}: {does}", part)


def _description(text: str) -> list[str]:
    """Return a description as lines. Text that does not fit into `_MOST_LINES` lines is cut."""
    lines = wrap(text, _LONGEST, break_on_hyphens=False)
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][: _LONGEST - 1]}…"]


def _head(part: int) -> str:
    return f"sub-topology {part}"


def _text_width(text: str, size: float) -> float:
    """Return the maximum width of a text. Ideographs count as two characters."""
    letters = sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
    return letters * size * _LETTER


def _layers(boxes: Collection[Box], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the layer of each box. A box is below all boxes from which edges lead to it, and below all earlier sub-topologies.

    In ``boxes``, each box must come after the boxes above it.
    """
    above: dict[str, list[str]] = {box.name: [] for box in boxes}
    below: dict[str, list[str]] = {box.name: [] for box in boxes}
    for upper, lower in edges:
        above[lower].append(upper)
        below[upper].append(lower)
    layers: dict[str, int] = {}
    start = 0
    for part in sorted({box.part for box in boxes}):
        members = [box.name for box in boxes if box.part == part]
        for name in members:
            layers[name] = max([start, *(layers[upper] + 1 for upper in above[name])])
        for name in members:  # a box with no box above it is placed just above the first box it leads to
            if not above[name] and below[name]:
                layers[name] = max(start, min(layers[lower] for lower in below[name] if lower in layers) - 1)
        start = 1 + max(layers[name] for name in members)
    return layers


def _rows(boxes: Collection[Box], layers: Mapping[str, int]) -> tuple[list[float], list[float]]:
    """Return the y coordinates at which the layers begin, and the heights of the layers."""
    rows = [[box for box in boxes if layers[box.name] == layer] for layer in range(_count(layers))]
    heights = [max(box.height for box in row) for row in rows]
    tops, y = list[float](), MARGIN + HEAD
    for layer, row in enumerate(rows):
        if layer:
            y += heights[layer - 1] + ROW_GAP + (HEAD + PAD if row[0].part != rows[layer - 1][0].part else 0)
        tops.append(y)
    return tops, heights


def _count(layers: Mapping[str, int]) -> int:
    return max(layers.values(), default=-1) + 1


def _centres(
    boxes: Mapping[str, Box], layers: Mapping[str, int], edges: Sequence[Edge]
) -> tuple[dict[_Item, float], float]:
    """Return the x coordinates of the centres of boxes and passing edges, and the width of the drawing without margins."""
    rows: list[list[_Item]] = [[] for _ in range(_count(layers))]
    for name in boxes:
        rows[layers[name]].append(name)
    above: dict[_Item, list[_Item]] = {}
    below: dict[_Item, list[_Item]] = {}
    for edge in edges:
        passes = [_Pass(edge, layer) for layer in range(layers[edge[0]] + 1, layers[edge[1]])]
        for passing in passes:
            rows[passing.layer].append(passing)
        chain: list[_Item] = [edge[0], *passes, edge[1]]
        for upper, lower in pairwise(chain):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    rows = _ordered(rows, above, below)
    widths = {item: boxes[item].width if isinstance(item, str) else LINE_WIDTH for row in rows for item in row}
    x: dict[_Item, float] = {}
    for row in rows:
        x |= _spread(row, dict.fromkeys(row, 0.0), widths)
    for turn in range(_TURNS):
        neighbours = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = {item: _mean([x[other] for other in neighbours.get(item, ())], x[item]) for item in row}
            x |= _spread(row, wanted, widths)
    left = min((x[item] - widths[item] / 2 for item in x), default=0.0)
    right = max((x[item] + widths[item] / 2 for item in x), default=0.0)
    return {item: x[item] - left + MARGIN + PAD for item in x}, right - left


_Neighbours = Mapping[_Item, Sequence[_Item]]


def _ordered(rows: list[list[_Item]], above: _Neighbours, below: _Neighbours) -> list[list[_Item]]:
    """Return the order of each layer that has the fewest crossings.

    Alternately downwards and upwards, each layer is sorted by the mean position of its items' neighbours.
    """
    best, fewest = rows, _crossings(rows, below)
    for turn in range(_TURNS):
        is_down = turn % 2 == 0
        neighbours = above if is_down else below
        rows = [list(row) for row in rows]
        for layer in range(1, len(rows)) if is_down else range(len(rows) - 2, -1, -1):
            theirs = _index_of(rows[layer - 1 if is_down else layer + 1])
            own = _index_of(rows[layer])
            means = {item: _mean([theirs[n] for n in neighbours.get(item, ())], own[item]) for item in own}
            rows[layer].sort(key=means.__getitem__)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[Sequence[_Item]], below: _Neighbours) -> int:
    count = 0
    for upper, lower in pairwise(rows):
        index_of = _index_of(lower)
        ends = [(index, index_of[other]) for index, item in enumerate(upper) for other in below.get(item, ())]
        count += sum(1 for a, b in ends for c, d in ends if a < c and b > d)
    return count


def _index_of(row: Sequence[_Item]) -> dict[_Item, int]:
    return {item: index for index, item in enumerate(row)}


def _spread(row: Sequence[_Item], wanted: Mapping[_Item, float], widths: Mapping[_Item, float]) -> dict[_Item, float]:
    """Return the positions of a layer's items: without overlaps, and as close to ``wanted`` as possible (least squares)."""
    offsets = [0.0]
    for item, following in pairwise(row):
        offsets.append(offsets[-1] + (widths[item] + widths[following]) / 2 + GAP)
    # A block is a group of neighbouring items that share a position. It is stored as (sum of wanted positions, number of
    # items).
    blocks: list[tuple[float, int]] = []
    for item, offset in zip(row, offsets, strict=False):
        blocks.append((wanted[item] - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            (total, count), (last, more) = blocks[-2:]
            blocks[-2:] = [(total + last, count + more)]
    shared = [total / count for total, count in blocks for _ in range(count)]
    return {item: position + offset for item, position, offset in zip(row, shared, offsets, strict=False)}


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _arrow(points: Sequence[tuple[float, float, float]], *, is_dashed: bool) -> list[svg.Element]:
    """Return an edge as an arrow. It is straight within the layers that it passes, and curved only between two layers."""
    (x, top, bottom), *rest = points
    path: list[svg.PathData] = [svg.M(round(x, 1), round(top, 1)), svg.V(round(bottom, 1))]
    for to, start, stop in rest:
        tip = _TIP if (to, start, stop) == rest[-1] else 0
        middle = (bottom + start - tip) / 2
        path.append(svg.C(*(round(value, 1) for value in (x, middle, to, middle, to, start - tip))))
        path.append(svg.V(round(stop - tip, 1)))
        x, bottom = to, stop
    corners = ((x - 4, bottom - _TIP), (x + 4, bottom - _TIP), (x, bottom - 1))
    return [
        svg.Path(
            d=path,
            fill="none",
            stroke=_ARROW[0],
            stroke_width=1.4,
            stroke_dasharray=[5, 4] if is_dashed else None,
            class_=["rw-line"],
        ),
        svg.Polygon(
            points=[svg.Point(round(x, 1), round(y, 1)) for x, y in corners], fill=_ARROW[0], class_=["rw-tip"]
        ),
    ]


def _drawn(box: Box, centre: float, top: float) -> svg.Element:
    radius = 5 if box.kind == "node" else min(16.0, box.height / 2)
    y = top + PAD + 11
    parts: list[svg.Element] = [
        svg.Title(text=escape(box.tooltip)),
        _rect(box.kind, centre - box.width / 2, top, box.width, box.height, radius),
        _text(centre, y, box.title, TITLE, _INK, weight="bold"),
    ]
    for line in box.lines:
        y += LINE
        parts.append(_text(centre, y, line, TEXT, _SOFT))
    y += LINE
    for store in box.stores:
        width = _text_width(store, TEXT) + 12
        parts.append(_rect("store", centre - width / 2, y - 9, width, LINE + 1, 4))
        parts.append(_text(centre, y + 3, store, TEXT, _INK))
        y += LINE + 4
    return svg.G(elements=parts)


def _rect(kind: str, x: float, y: float, width: float, height: float, radius: float) -> svg.Rect:
    fill, stroke = _LIGHT[kind]
    return svg.Rect(
        x=round(x, 1),
        y=round(y, 1),
        width=round(width, 1),
        height=round(height, 1),
        rx=radius,
        fill=fill,
        stroke=stroke or None,
        class_=[f"rw-{kind}"],
    )


def _text(
    x: float,
    y: float,
    text: str,
    size: int,
    ink: tuple[str, str],
    *,
    anchor: str = "middle",
    weight: Literal["normal", "bold"] = "normal",
) -> svg.Text:
    return svg.Text(
        x=round(x, 1),
        y=round(y, 1),
        text=escape(text),
        fill=ink[0],
        font_family=escape(_FONT),
        font_size=size,
        font_weight=weight,
        class_=["rw-ink" if ink is _INK else "rw-soft"],
        extra={"text-anchor": anchor},
    )


def _dark_style() -> str:
    rules = [f".rw-{kind}{{fill:{fill};{f'stroke:{line}' if line else ''}}}" for kind, (fill, line) in _DARK.items()]
    rules += [f".rw-ink{{fill:{_INK[1]}}}", f".rw-soft{{fill:{_SOFT[1]}}}"]
    rules += [f".rw-line{{stroke:{_ARROW[1]}}}", f".rw-tip{{fill:{_ARROW[1]}}}"]
    return f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}"
