"""The page of Kafka's API names every public method of Kafka Streams, and only equivalents that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rewindow
from rewindow import testing

PAGE = Path(__file__).parents[2] / "docs" / "kafka-api.md"
METHODS = Path(__file__).parent / "recorded" / "kafka_streams_4.4.0.txt"
"""The public methods by class, as `javap` lists them."""
ROW = re.compile(r"^\| `(?P<method>\w+)` \| (?P<equivalent>none|`[\w.]+`) \| (?P<remark>.*)\|$")


def kafka() -> dict[str, list[str]]:
    lines = METHODS.read_text(encoding="utf-8").splitlines()
    return {kind: methods.split() for kind, methods in (line.split(": ", 1) for line in lines)}


def page() -> dict[str, list[tuple[str, str, str]]]:
    found: dict[str, list[tuple[str, str, str]]] = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        kind, _, body = section.partition("\n")
        rows = [line for line in body.splitlines() if line.startswith("| ")][2:]
        matched = [ROW.match(row) for row in rows]
        assert all(matched), [row for row, match in zip(rows, matched, strict=True) if not match]
        found[kind] = [(match["method"], match["equivalent"].strip("`"), match["remark"]) for match in matched if match]
    return found


@pytest.mark.parametrize("kind", kafka())
def test_every_method_has_an_equivalent_or_a_reason(kind: str) -> None:
    rows = page()[kind]
    assert sorted(method for method, _, _ in rows) == kafka()[kind]
    assert [method for method, equivalent, remark in rows if equivalent == "none" and not remark.strip()] == []


def in_package(name: str) -> object:
    return getattr(rewindow, name, None) or getattr(testing, name, None)


def names() -> list[str]:
    in_rows = [equivalent for rows in page().values() for _, equivalent, _ in rows if equivalent != "none"]
    in_remarks = [
        name
        for rows in page().values()
        for _, _, remark in rows
        for name in re.findall(r"`([A-Z]\w+\.[a-z]\w*)`", remark)
        if in_package(name.partition(".")[0])
    ]
    return sorted({*in_rows, *in_remarks})


@pytest.mark.parametrize("name", names())
def test_every_equivalent_exists(name: str) -> None:
    kind, _, member = name.partition(".")
    named = in_package(kind)
    assert named is not None
    assert not member or hasattr(named, member)


def test_the_page_has_no_other_classes() -> None:
    assert sorted(page()) == sorted(kafka())
