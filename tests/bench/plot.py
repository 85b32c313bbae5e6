"""Bar charts as SVG for the results page. A dozen rectangles do not justify a plotting library."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

BAR, GAP, LEFT, WIDTH = 22, 8, 230, 640
STYLE = "font-family:sans-serif;font-size:13px"


def bars(title: str, values: Mapping[str, float], unit: str) -> str:
    """Return a chart of named values, each as a bar with its number."""
    most = max(values.values(), default=0.0) or 1.0
    height = 34 + len(values) * (BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" style="{STYLE}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="20" font-weight="bold">{escape(title)} ({escape(unit)})</text>',
    ]
    for index, (name, value) in enumerate(values.items()):
        top = 30 + index * (BAR + GAP)
        long = max(1, round((WIDTH - LEFT - 80) * value / most))
        lines += [
            f'<text x="{LEFT - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{long}" height="{BAR}" fill="{"#2a6f97" if index == 0 else "#89a9bd"}"/>',
            f'<text x="{LEFT + long + 6}" y="{top + 15}">{value:,.2f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
