"""The drawing of a topology: nothing overlaps, no line crosses a box, all text is escaped, and it fits light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindow.report.topology_svg import Picture, picture, topology_svg
from tests.bad_input.scene import Bench, copy_of, without_spark

SVG = "{http://www.w3.org/2000/svg}"


def node(name: str, *parents: str, does: str = "map", topic: str | None = None, stores: tuple[str, ...] = ()) -> dict:
    return {"node": name, "does": does, "topic": topic, "parents": list(parents), "stores": list(stores)}


TWO_PARTS = [
    {
        "sub_topology": 0,
        "nodes": [
            node("orders", topic="orders"),
            node("rates", topic="rates"),
            node("table", "rates", stores=("rates",)),
            node("join", "orders", stores=("rates",)),
            node("sink", "join", topic="by-country-repartition"),
            node("all", "orders", topic="all-orders"),
        ],
    },
    {
        "sub_topology": 1,
        "nodes": [
            node("source", topic="by-country-repartition"),
            node("count", "source", does="aggregate(count, store=per-country)", stores=("per-country",)),
            node("out", "count", topic="per-country"),
        ],
    },
]


@st.composite
def topologies(draw: st.DrawFn) -> list[dict]:
    """Return sub-topologies, each a random graph, with internal topics from earlier to later ones."""
    parts, sinks = [], []
    for part in range(draw(st.integers(1, 3))):
        nodes = [node(f"{part}-source", topic=sinks[-1] if sinks and draw(st.booleans()) else f"topic-{part}")]
        for number in range(draw(st.integers(0, 9))):
            above = draw(st.lists(st.sampled_from([one["node"] for one in nodes]), min_size=1, max_size=3, unique=True))
            stores = tuple(f"store-{n}" for n in range(draw(st.integers(0, 2))))
            nodes.append(node(f"{part}-{number}", *above, does="x" * draw(st.integers(1, 200)), stores=stores))
        sinks.append(f"internal-{part}")
        nodes.append(node(f"{part}-sink", nodes[-1]["node"], topic=sinks[-1]))
        parts.append({"sub_topology": part, "nodes": nodes})
    return parts


def rectangle(shown: Picture, name: str) -> tuple[float, float, float, float]:
    half = shown.boxes[name].width / 2
    return shown.centres[name] - half, shown.top(name), shown.centres[name] + half, shown.bottom(name)


@given(topologies())
def test_no_two_boxes_overlap_and_no_line_crosses_a_box(parts: list[dict]) -> None:
    shown = picture(parts)
    for one, other in combinations(shown.boxes, 2):
        a, b = rectangle(shown, one), rectangle(shown, other)
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (one, other)
    for edge in (*shown.edges, *shown.between):
        for x, start, stop in shown.points(edge)[1:-1]:
            for name in shown.boxes:
                left, top, right, bottom = rectangle(shown, name)
                assert x <= left or x >= right or stop <= top or start >= bottom, (edge, name)
    for name in shown.boxes:
        left, top, right, bottom = rectangle(shown, name)
        assert left > 0 and top > 0 and right < shown.width and bottom < shown.height  # noqa: PT018


@given(topologies())
def test_every_line_leads_down(parts: list[dict]) -> None:
    shown = picture(parts)
    for edge in (*shown.edges, *shown.between):
        heights = [y for _, start, stop in shown.points(edge) for y in (start, stop)]
        assert heights == sorted(heights)


def test_topics_nodes_and_stores_are_shown() -> None:
    texts = [one.text for one in ET.fromstring(topology_svg("Two parts", TWO_PARTS)).iter(f"{SVG}text")]  # noqa: S314
    assert [text for text in texts if text.startswith("sub-topology")] == ["sub-topology 0", "sub-topology 1"]
    assert texts.count("by-country-repartition") == 2
    assert texts.count("internal topic") == 2
    assert texts.count("topic") == 2
    assert texts.count("output") == 2
    assert "store per-country" in texts


def test_the_same_topology_gets_the_same_drawing() -> None:
    assert topology_svg("Two parts", TWO_PARTS) == topology_svg("Two parts", TWO_PARTS)


def test_markup_in_names_is_text() -> None:
    evil = "<script>alert('&')</script>"
    parts = [{"sub_topology": 0, "nodes": [node(evil, does=evil, topic=evil, stores=(evil,))]}]
    drawn = topology_svg(evil, parts)
    assert "<script" not in drawn
    root = ET.fromstring(drawn)  # noqa: S314 - our own file
    assert root.find(f"{SVG}title").text == evil
    assert evil in [one.text for one in root.iter(f"{SVG}text")]


def test_a_drawing_has_a_title_and_colours_for_light_and_dark() -> None:
    drawn = topology_svg("Two parts", TWO_PARTS)
    assert "<title>Two parts</title>" in drawn
    assert "prefers-color-scheme: dark" in drawn
    assert 'fill="#ffffff"' in drawn


@pytest.fixture(scope="module")
def template(two_hours: Bench) -> Iterator[Bench]:
    with without_spark():
        yield two_hours


def test_explain_draws_the_topology(template: Bench, tmp_path: Path) -> None:
    bench, file = copy_of(template, tmp_path / "project"), tmp_path / "pictures" / "counts.svg"
    answer = bench.run("explain", "counts", "--svg", str(file))
    assert (answer.code, answer.out.splitlines()[-1]) == (0, f"Drawing: {file}")
    assert "<title>Topology of counts</title>" in file.read_text()
    answer = bench.run("explain", "counts", "--svg", str(file), "--json")
    assert json.loads(answer.out)["svg"] == str(file)


def test_a_folder_is_refused_before_anything_else(template: Bench, tmp_path: Path) -> None:
    template.refuses(f"explain nobody --svg {tmp_path}", "written-file-is-folder", path=tmp_path)
