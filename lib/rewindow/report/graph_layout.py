"""Arrange the boxes of a directed graph in layers, so that no two overlap and no line crosses a box.

Each step is a standard one of layered drawing: layers by the longest path, an order within each layer that avoids crossings, and
positions near the neighbours. The same graph always gets the same drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP = 22.0
"""The space between two boxes of a layer."""
LINE = 10.0
"""The width of a line that passes a layer."""
_TURNS = 12


@dataclass(frozen=True, slots=True)
class Layout:
    """The centre of each box, and the layers from top to bottom.

    ``lines`` has for each edge the centres that it passes in the layers between its ends, as pairs of layer and x.
    """

    x: Mapping[str, float]
    layer: Mapping[str, int]
    lines: Mapping[tuple[str, str], Sequence[tuple[int, float]]]
    width: float

    @property
    def layers(self) -> int:
        """The number of layers."""
        return max(self.layer.values(), default=-1) + 1


@dataclass(frozen=True, slots=True)
class _Pass:
    """Where an edge passes a layer between its ends."""

    edge: tuple[str, str]
    layer: int


_Item = str | _Pass


def arrange(widths: Mapping[str, float], edges: Sequence[tuple[str, str]], bands: Mapping[str, int]) -> Layout:
    """Arrange boxes of some widths. Each edge names the upper box first; a band is below all bands with lower numbers.

    The boxes are listed in an order in which each comes after those above it.
    """
    layer = _layers(list(widths), edges, bands)
    rows: list[list[_Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in widths:
        rows[layer[name]].append(name)
    links: list[tuple[_Item, _Item]] = []
    passes: dict[tuple[str, str], list[_Pass]] = {}
    for edge in edges:
        passes[edge] = [_Pass(edge, at) for at in range(layer[edge[0]] + 1, layer[edge[1]])]
        for one in passes[edge]:
            rows[one.layer].append(one)
        links += pairwise((edge[0], *passes[edge], edge[1]))
    rows = _ordered(rows, links)
    x = _positions(rows, links, widths)
    left = min((x[one] - _width(one, widths) / 2 for one in x), default=0.0)
    right = max((x[one] + _width(one, widths) / 2 for one in x), default=0.0)
    return Layout(
        {name: x[name] - left for name in widths},
        layer,
        {edge: [(one.layer, x[one] - left) for one in passed] for edge, passed in passes.items()},
        right - left,
    )


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]], bands: Mapping[str, int]) -> dict[str, int]:
    above: dict[str, list[str]] = {name: [] for name in names}
    below: dict[str, list[str]] = {name: [] for name in names}
    for upper, lower in edges:
        above[lower].append(upper)
        below[upper].append(lower)
    layer: dict[str, int] = {}
    start = 0
    for band in sorted(set(bands.values())):
        members = [name for name in names if bands[name] == band]
        for name in members:
            layer[name] = max([start, *(layer[one] + 1 for one in above[name])])
        for name in members:  # what begins here moves down to what it leads to
            if not above[name] and below[name]:
                layer[name] = max(start, min(layer[one] for one in below[name] if one in layer) - 1)
        start = 1 + max(layer[name] for name in members)
    return layer


def _ordered(rows: list[list[_Item]], links: Sequence[tuple[_Item, _Item]]) -> list[list[_Item]]:
    """Order each layer by the mean position of its neighbours, down and up in turns; return the best order found."""
    above, below = _neighbours(links)
    best, fewest = rows, _crossings(rows, below)
    for turn in range(_TURNS):
        down = turn % 2 == 0
        near, order = (above, range(1, len(rows))) if down else (below, range(len(rows) - 2, -1, -1))
        rows = [list(row) for row in rows]
        for at in order:
            index_of = {one: index for index, one in enumerate(rows[at - 1 if down else at + 1])}
            own = {one: index for index, one in enumerate(rows[at])}
            rows[at].sort(key=lambda one: _mean([index_of[n] for n in near.get(one, ())], own[one]))
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: Sequence[Sequence[_Item]], below: Mapping[_Item, Sequence[_Item]]) -> int:
    count = 0
    for upper, lower in pairwise(rows):
        index_of = {one: index for index, one in enumerate(lower)}
        ends = [(index, index_of[other]) for index, one in enumerate(upper) for other in below.get(one, ())]
        count += sum(1 for a, b in ends for c, d in ends if a < c and b > d)
    return count


def _positions(
    rows: Sequence[Sequence[_Item]], links: Sequence[tuple[_Item, _Item]], widths: Mapping[str, float]
) -> dict[_Item, float]:
    above, below = _neighbours(links)
    x: dict[_Item, float] = {}
    for row in rows:
        x |= dict(zip(row, _spread(row, [0.0] * len(row), widths), strict=True))
    for turn in range(_TURNS):
        near = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = [_mean([x[other] for other in near.get(one, ())], x[one]) for one in row]
            x |= dict(zip(row, _spread(row, wanted, widths), strict=True))
    return x


def _spread(row: Sequence[_Item], wanted: Sequence[float], widths: Mapping[str, float]) -> list[float]:
    """Return the positions nearest to those that are wanted, by least squares, at which nothing in a layer overlaps."""
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (_width(one, widths) + _width(other, widths)) / 2 + GAP)
    blocks: list[tuple[float, int]] = []  # sum and number of neighbours that share a position
    for want, offset in zip(wanted, offsets, strict=False):
        blocks.append((want - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            (total, count), (last, more) = blocks[-2:]
            blocks[-2:] = [(total + last, count + more)]
    shared = [total / count for total, count in blocks for _ in range(count)]
    return [position + offset for position, offset in zip(shared, offsets, strict=False)]


def _neighbours(links: Sequence[tuple[_Item, _Item]]) -> tuple[dict[_Item, list[_Item]], dict[_Item, list[_Item]]]:
    above: dict[_Item, list[_Item]] = {}
    below: dict[_Item, list[_Item]] = {}
    for upper, lower in links:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    return above, below


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _width(one: _Item, widths: Mapping[str, float]) -> float:
    return LINE if isinstance(one, _Pass) else widths[one]
