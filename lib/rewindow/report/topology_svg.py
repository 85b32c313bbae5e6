"""A topology as an SVG drawing: topics, nodes with their stores, and a frame around each sub-topology.

Colours are attributes, for viewers that drop style sheets; the style sheet replaces them where the reader prefers the dark. The
drawing has a ground of its own, so it is readable on any page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any
from unicodedata import east_asian_width

import svg

from rewindow.report.graph_layout import Layout, place

MARGIN, PAD, ROW_GAP, HEAD = 18.0, 10.0, 34.0, 26.0
"""Around the drawing; within a box; between two layers; for the title of a sub-topology."""
_LINE, _TITLE, _TEXT = 16.0, 12, 11
"""The height of a line, and the sizes of titles and other text."""
_CELL = 0.62
"""The width of a character, as a share of the size: that of the widest of the common monospaced fonts."""
_FONT = "ui-monospace, 'Liberation Mono', Menlo, Consolas, monospace"
_MOST_CELLS, _MOST_LINES = 44, 3
"""Longer descriptions are cut; the tooltip has all of it."""

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


@dataclass(frozen=True, slots=True)
class _Box:
    """A box: what it is, its title, the lines of its description, and its stores."""

    name: str
    kind: str
    title: str
    lines: Sequence[str]
    stores: Sequence[str]
    tooltip: str
    band: int

    @property
    def width(self) -> float:
        texts = [_wide(self.title, _TITLE), *(_wide(line, _TEXT) for line in self.lines)]
        return max([60.0, *texts, *(_wide(store, _TEXT) + 12 for store in self.stores)]) + 2 * PAD

    @property
    def height(self) -> float:
        return 2 * PAD + _LINE * (1 + len(self.lines)) + (_LINE + 4) * len(self.stores) - 4


def topology_svg(title: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the drawing of the sub-topologies that `explain` describes, as the text of an SVG file."""
    boxes = {box.name: box for part in parts for box in _boxes(part, _written_to_internal(parts))}
    edges, between = _edges(parts)
    layout = place({name: box.width for name, box in boxes.items()}, [*edges, *between], _bands(boxes))
    tops, heights = _tops(boxes, layout)
    left = MARGIN + PAD
    drawn: list[svg.Element] = []
    width = max(layout.width, max((_wide(_head(part), _TEXT) for part in parts), default=0.0)) + 2 * left
    for part in parts:
        drawn += _frame(part, boxes, layout, tops, heights, width)
    for edge in (*edges, *between):
        drawn += _line(edge, boxes, layout, tops, heights, left, is_dashed=edge in between)
    for box in boxes.values():
        at = layout.layer[box.name]
        drawn.append(_drawn(box, left + layout.x[box.name], tops[at] + (heights[at] - box.height) / 2))
    height = (tops[-1] + heights[-1] if tops else 0.0) + PAD + MARGIN
    drawing = svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, round(width, 1), round(height, 1)),
        width=round(width, 1),
        height=round(height, 1),
        style="max-width:100%;height:auto",
        elements=[
            svg.Title(text=escape(title)),
            svg.Style(text=_style()),
            _rect("ground", 0, 0, width, height, 6),
            *drawn,
        ],
        extra={"role": "img", "aria-label": escape(title)},
    )
    return drawing.as_str()


def _boxes(part: Mapping[str, Any], between: frozenset[str]) -> list[_Box]:
    made = []
    for node in part["nodes"]:
        topic, does = node["topic"], node["does"]
        is_source = not node["parents"]
        if topic is None:
            kind, title, text = "node", node["node"], does
        else:
            is_between = topic in between
            kind = "between" if is_between else "topic" if is_source else "output"
            title, text = topic, "internal topic" if is_between else "topic" if is_source else "output"
        stores = [f"store {name}" for name in node["stores"]]
        tooltip = f"{node['node']}: {does}"
        made.append(_Box(node["node"], kind, title, _wrapped(text), stores, tooltip, part["sub_topology"]))
    return made


def _written_to_internal(parts: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the topics that one sub-topology writes and another reads."""
    nodes = [node for part in parts for node in part["nodes"] if node["topic"] is not None]
    return frozenset(node["topic"] for node in nodes if node["parents"]) & {
        node["topic"] for node in nodes if not node["parents"]
    }


def _edges(parts: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the edges within sub-topologies, and those from the writers of internal topics to their readers."""
    nodes = [node for part in parts for node in part["nodes"]]
    within = [(parent, node["node"]) for node in nodes for parent in node["parents"]]
    writers = {node["topic"]: node["node"] for node in nodes if node["topic"] is not None and node["parents"]}
    readers = [node for node in nodes if node["topic"] in writers and not node["parents"]]
    return within, [(writers[node["topic"]], node["node"]) for node in readers]


def _bands(boxes: Mapping[str, _Box]) -> dict[str, int]:
    return {name: box.band for name, box in boxes.items()}


def _tops(boxes: Mapping[str, _Box], layout: Layout) -> tuple[list[float], list[float]]:
    """Return where each layer begins, and how high it is."""
    count = max(layout.layer.values(), default=-1) + 1
    heights = [max(box.height for box in boxes.values() if layout.layer[box.name] == at) for at in range(count)]
    bands = [min(box.band for box in boxes.values() if layout.layer[box.name] == at) for at in range(count)]
    tops: list[float] = []
    y = MARGIN + HEAD
    for at in range(count):
        if at:
            y += heights[at - 1] + ROW_GAP + (HEAD + PAD if bands[at] != bands[at - 1] else 0)
        tops.append(y)
    return tops, heights


def _frame(
    part: Mapping[str, Any],
    boxes: Mapping[str, _Box],
    layout: Layout,
    tops: Sequence[float],
    heights: Sequence[float],
    width: float,
) -> list[svg.Element]:
    layers = [layout.layer[box.name] for box in boxes.values() if box.band == part["sub_topology"]]
    top, bottom = tops[min(layers)] - HEAD, tops[max(layers)] + heights[max(layers)] + PAD
    return [
        _rect("frame", MARGIN / 2, top, width - MARGIN, bottom - top, 6),
        _text(MARGIN, top + 17, _head(part), _TEXT, _SOFT, anchor="start"),
    ]


def _head(part: Mapping[str, Any]) -> str:
    return f"sub-topology {part['sub_topology']}"


def _line(
    edge: tuple[str, str],
    boxes: Mapping[str, _Box],
    layout: Layout,
    tops: Sequence[float],
    heights: Sequence[float],
    left: float,
    *,
    is_dashed: bool,
) -> list[svg.Element]:
    """Return an edge: straight down through the layers that it passes, curved only between two layers."""
    upper, lower = boxes[edge[0]], boxes[edge[1]]
    x, at = left + layout.x[upper.name], layout.layer[upper.name]
    y = tops[at] + (heights[at] + upper.height) / 2
    path: list[svg.PathData] = [svg.M(round(x, 1), round(y, 1)), svg.V(round(tops[at] + heights[at], 1))]
    end = layout.layer[lower.name]
    tip = tops[end] + (heights[end] - lower.height) / 2
    for layer, centre in [*layout.lines[edge], (end, layout.x[lower.name])]:
        start, stop = tops[layer - 1] + heights[layer - 1], tops[layer] - (7 if layer == end else 0)
        middle, to = (start + stop) / 2, left + centre
        path.append(svg.C(*(round(one, 1) for one in (x, middle, to, middle, to, stop))))
        path.append(svg.V(round(tip - 7 if layer == end else tops[layer] + heights[layer], 1)))
        x = to
    dashes = {"stroke_dasharray": [5, 4]} if is_dashed else {}
    return [
        svg.Path(d=path, fill="none", stroke=_ARROW[0], stroke_width=1.4, class_=["rw-line"], **dashes),
        svg.Polygon(
            points=[round(one, 1) for one in (x - 4, tip - 8, x + 4, tip - 8, x, tip - 1)],
            fill=_ARROW[0],
            class_=["rw-tip"],
        ),
    ]


def _drawn(box: _Box, centre: float, top: float) -> svg.Element:
    radius = 5 if box.kind == "node" else min(16.0, box.height / 2)
    left = centre - box.width / 2
    parts: list[svg.Element] = [
        svg.Title(text=escape(box.tooltip)),
        _rect(box.kind, left, top, box.width, box.height, radius),
        _text(centre, top + PAD + 11, box.title, _TITLE, _INK, weight="600"),
    ]
    y = top + PAD + 11 + _LINE
    for line in box.lines:
        parts.append(_text(centre, y, line, _TEXT, _SOFT))
        y += _LINE
    for store in box.stores:
        wide = _wide(store, _TEXT) + 12
        parts.append(_rect("store", centre - wide / 2, y - 9, wide, _LINE + 1, 4))
        parts.append(_text(centre, y + 3, store, _TEXT, _INK))
        y += _LINE + 4
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
    x: float, y: float, text: str, size: int, ink: tuple[str, str], *, anchor: str = "middle", weight: str = "400"
) -> svg.Text:
    return svg.Text(
        x=round(x, 1),
        y=round(y, 1),
        text=escape(text),
        fill=ink[0],
        font_family=escape(_FONT),
        font_size=size,
        font_weight=weight,  # type: ignore[arg-type]  # a number is text in the file anyway
        class_=["rw-ink" if ink is _INK else "rw-soft"],
        extra={"text-anchor": anchor},
    )


def _style() -> str:
    rules = [f".rw-{kind}{{fill:{fill};{f'stroke:{line}' if line else ''}}}" for kind, (fill, line) in _DARK.items()]
    rules += [f".rw-ink{{fill:{_INK[1]}}}", f".rw-soft{{fill:{_SOFT[1]}}}"]
    rules += [f".rw-line{{stroke:{_ARROW[1]}}}", f".rw-tip{{fill:{_ARROW[1]}}}"]
    return f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}"


def _wrapped(text: str) -> list[str]:
    """Return a description in lines. What does not fit into the last one is cut."""
    whole = wrap(text, _MOST_CELLS)
    if len(whole) <= _MOST_LINES:
        return whole
    return [*whole[: _MOST_LINES - 1], f"{whole[_MOST_LINES - 1][: _MOST_CELLS - 1]}…"]


def _wide(text: str, size: float) -> float:
    """Return how wide a text is at most; ideographs take two cells."""
    cells = sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
    return cells * size * _CELL
