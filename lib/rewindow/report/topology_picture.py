"""The boxes and lines of a topology's drawing: what each says, how much room that takes, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any
from unicodedata import east_asian_width

from rewindow.report.graph_layout import Layout, arrange

MARGIN, PAD, ROW_GAP, HEAD = 18.0, 10.0, 34.0, 26.0
"""Around the drawing; within a box; between two layers; for the title of a sub-topology."""
LINE, TITLE, TEXT = 16.0, 12, 11
"""The height of a line, and the sizes of titles and other text."""
_LETTER = 0.62
"""The width of a character, as a share of the size: that of the widest of the common monospaced fonts."""
_LONGEST, _MOST_LINES = 44, 3
"""Longer descriptions are cut; the tooltip has all of it."""

Edge = tuple[str, str]
"""The names of two boxes, the upper one first."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its kind, its title, the lines of its description, its stores, and the sub-topology that it is in."""

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
        """How wide it is."""
        texts = [wide(self.title, TITLE), *(wide(line, TEXT) for line in self.lines)]
        return max([60.0, *texts, *(wide(store, TEXT) + 12 for store in self.stores)]) + 2 * PAD

    @property
    def height(self) -> float:
        """How high it is."""
        return 2 * PAD + LINE * (1 + len(self.lines)) + (LINE + 4) * len(self.stores) - 4


@dataclass(frozen=True, slots=True)
class Picture:
    """A topology with the place of everything. ``between`` has the edges from internal topics to their readers."""

    parts: Sequence[int]
    boxes: Mapping[str, Box]
    edges: Sequence[Edge]
    between: Sequence[Edge]
    layout: Layout
    tops: Sequence[float]
    heights: Sequence[float]
    """Where each layer begins, and how high it is."""

    def centre(self, name: str) -> float:
        """Return the x of a box's centre."""
        return self.layout.x[name] + MARGIN + PAD

    def top(self, name: str) -> float:
        """Return the y at which a box begins."""
        at = self.layout.layer[name]
        return self.tops[at] + (self.heights[at] - self.boxes[name].height) / 2

    def bottom(self, name: str) -> float:
        """Return the y at which a box ends."""
        return self.top(name) + self.boxes[name].height

    def frame(self, part: int) -> tuple[float, float]:
        """Return where the frame of a sub-topology begins and ends."""
        layers = [self.layout.layer[box.name] for box in self.boxes.values() if box.part == part]
        return self.tops[min(layers)] - HEAD, self.tops[max(layers)] + self.heights[max(layers)] + PAD

    def points(self, edge: Edge) -> list[tuple[float, float, float]]:
        """Return what an edge passes, from top to bottom: an x, and the y's between which it stays there."""
        upper, lower = edge
        passed = [(self.layout.layer[upper], self.layout.x[upper]), *self.layout.lines[edge]]
        straight = [(x + MARGIN + PAD, self.tops[at], self.tops[at] + self.heights[at]) for at, x in passed]
        first = straight[0]
        below = self.layout.layer[lower]
        end = (self.centre(lower), self.tops[below], self.top(lower))
        return [(first[0], self.bottom(upper), first[2]), *straight[1:], end]

    @property
    def width(self) -> float:
        """How wide the drawing is."""
        return max([self.layout.width, *(wide(head(part), TEXT) for part in self.parts)]) + 2 * (MARGIN + PAD)

    @property
    def height(self) -> float:
        """How high the drawing is."""
        return (self.tops[-1] + self.heights[-1] if self.tops else 0.0) + PAD + MARGIN


def picture(parts: Sequence[Mapping[str, Any]]) -> Picture:
    """Return the picture of the sub-topologies that `explain` describes."""
    internal = _internal(parts)
    boxes = {box.name: box for part in parts for box in _boxes(part, internal)}
    nodes = [node for part in parts for node in part["nodes"]]
    edges = [(parent, node["node"]) for node in nodes for parent in node["parents"]]
    writers = {node["topic"]: node["node"] for node in nodes if node["topic"] in internal and node["parents"]}
    readers = [node for node in nodes if node["topic"] in internal and not node["parents"]]
    between = [(writers[node["topic"]], node["node"]) for node in readers]
    bands = {name: box.part for name, box in boxes.items()}
    layout = arrange({name: box.width for name, box in boxes.items()}, [*edges, *between], bands)
    tops, heights = _rows(boxes, layout)
    return Picture([part["sub_topology"] for part in parts], boxes, edges, between, layout, tops, heights)


def head(part: int) -> str:
    """Return the title of a sub-topology."""
    return f"sub-topology {part}"


def wide(text: str, size: float) -> float:
    """Return how wide a text is at most; ideographs take twice the room."""
    letters = sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
    return letters * size * _LETTER


def _internal(parts: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the topics that one sub-topology writes and another reads."""
    nodes = [node for part in parts for node in part["nodes"] if node["topic"] is not None]
    read = {node["topic"] for node in nodes if not node["parents"]}
    return frozenset(node["topic"] for node in nodes if node["parents"] and node["topic"] in read)


def _boxes(part: Mapping[str, Any], internal: frozenset[str]) -> list[Box]:
    made = []
    for node in part["nodes"]:
        topic, does = node["topic"], node["does"]
        if topic is None:
            kind, title, text = "node", node["node"], does
        else:
            kind = "between" if topic in internal else "output" if node["parents"] else "topic"
            title, text = topic, "internal topic" if kind == "between" else kind
        stores = [f"store {name}" for name in node["stores"]]
        made.append(
            Box(node["node"], kind, title, _lines(text), stores, f"{node['node']}: {does}", part["sub_topology"])
        )
    return made


def _rows(boxes: Mapping[str, Box], layout: Layout) -> tuple[list[float], list[float]]:
    """Return where each layer begins, and how high it is."""
    layers = [[box for box in boxes.values() if layout.layer[box.name] == at] for at in range(layout.layers)]
    heights = [max(box.height for box in row) for row in layers]
    tops, y = list[float](), MARGIN + HEAD
    for at, row in enumerate(layers):
        if at:
            y += heights[at - 1] + ROW_GAP + (HEAD + PAD if row[0].part != layers[at - 1][0].part else 0)
        tops.append(y)
    return tops, heights


def _lines(text: str) -> list[str]:
    """Return a description in lines. What does not fit into the last one is cut."""
    whole = wrap(text, _LONGEST, break_on_hyphens=False)
    if len(whole) <= _MOST_LINES:
        return whole
    return [*whole[: _MOST_LINES - 1], f"{whole[_MOST_LINES - 1][: _LONGEST - 1]}…"]
