"""A topology as an SVG drawing: topics, nodes with their stores, and a frame around each sub-topology.

Colours are attributes, for viewers that drop style sheets; the style sheet replaces them where the reader prefers the dark. The
drawing has a ground of its own, so it is readable on any page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal

import svg

from rewindow.report.topology_picture import LINE, MARGIN, PAD, TEXT, TITLE, Box, Edge, Picture, head, picture, wide

_FONT = "ui-monospace, 'Liberation Mono', Menlo, Consolas, monospace"
_TIP = 8.0
"""The length of the tip of an arrow."""

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


def topology_svg(title: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the drawing of the sub-topologies that `explain` describes, as the text of an SVG file."""
    shown = picture(parts)
    drawn: list[svg.Element] = []
    for part in shown.parts:
        top, bottom = shown.frame(part)
        drawn.append(_rect("frame", MARGIN / 2, top, shown.width - MARGIN, bottom - top, 6))
        drawn.append(_text(MARGIN, top + 17, head(part), TEXT, _SOFT, anchor="start"))
    for edge in (*shown.edges, *shown.between):
        drawn += _arrow(shown, edge, is_dashed=edge in shown.between)
    drawn += [_drawn(box, shown.centre(box.name), shown.top(box.name)) for box in shown.boxes.values()]
    drawing = svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, round(shown.width, 1), round(shown.height, 1)),
        width=round(shown.width, 1),
        height=round(shown.height, 1),
        style="max-width:100%;height:auto",
        elements=[
            svg.Title(text=escape(title)),
            svg.Style(text=_style()),
            _rect("ground", 0, 0, shown.width, shown.height, 6),
            *drawn,
        ],
        extra={"role": "img", "aria-label": escape(title)},
    )
    return drawing.as_str()


def _arrow(shown: Picture, edge: Edge, *, is_dashed: bool) -> list[svg.Element]:
    """Return an edge: straight down through the layers that it passes, curved only between two layers."""
    (x, top, bottom), *rest = shown.points(edge)
    path: list[svg.PathData] = [svg.M(round(x, 1), round(top, 1)), svg.V(round(bottom, 1))]
    for to, start, stop in rest:
        is_last = (to, start, stop) == rest[-1]
        begin = start - (_TIP if is_last else 0)
        middle = (bottom + begin) / 2
        path.append(svg.C(*(round(one, 1) for one in (x, middle, to, middle, to, begin))))
        path.append(svg.V(round(stop - (_TIP if is_last else 0), 1)))
        x, bottom = to, stop
    corners = ((x - 4, bottom - _TIP), (x + 4, bottom - _TIP), (x, bottom - 1))
    points = [svg.Point(round(at, 1), round(y, 1)) for at, y in corners]
    return [
        svg.Path(
            d=path,
            fill="none",
            stroke=_ARROW[0],
            stroke_width=1.4,
            stroke_dasharray=[5, 4] if is_dashed else None,
            class_=["rw-line"],
        ),
        svg.Polygon(points=points, fill=_ARROW[0], class_=["rw-tip"]),
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
        width = wide(store, TEXT) + 12
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


def _style() -> str:
    rules = [f".rw-{kind}{{fill:{fill};{f'stroke:{line}' if line else ''}}}" for kind, (fill, line) in _DARK.items()]
    rules += [f".rw-ink{{fill:{_INK[1]}}}", f".rw-soft{{fill:{_SOFT[1]}}}"]
    rules += [f".rw-line{{stroke:{_ARROW[1]}}}", f".rw-tip{{fill:{_ARROW[1]}}}"]
    return f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}"
