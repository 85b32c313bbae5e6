"""The page of a report: whole, small, escaped, readable without a network, and accessible."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.open_project import OpenProject
from rewindow.app.report import Wanted
from rewindow.app.report import report as collect
from rewindow.control.health.late_and_dropped_records import Bucket, Lateness
from rewindow.report.page import SECTIONS, page
from rewindow.report.report_facts import BranchDiff, Difference, OutputDiff, Report, Sample, Verification
from tests.bad_input.scene import Bench, copy_of

VOID = {"meta"}
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;`</code>\u202e\x1b\x9b"


class Parsed(HTMLParser):
    """The elements of a page; the ends of elements must fit their starts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        for outer in self.open:
            self.inside.setdefault(outer, []).append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


@pytest.fixture(scope="module")
def report(project: Bench, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return a report that has every section."""
    bench = copy_of(project, tmp_path_factory.mktemp("page") / "project")
    assert bench.run("backfill", "counts", "--from", "3", "--branch", "fix").code == 0
    found = collect(OpenProject.open(bench.root), "counts", Wanted("main", diff="fix"))
    return dataclasses.replace(found, verification=Verification(["main/5"], [Difference("main/5", "metrics", "x")]))


def hostile(value: Any) -> Any:
    """Return a value with every text in it replaced, except those that the page compares with known ones."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: hostile(getattr(value, field.name)) for field in dataclasses.fields(value)}
        kept = {name: getattr(value, name) for name in ("level", "kind", "clock") if name in changes}
        return dataclasses.replace(value, **{**changes, **(kept if type(value).__name__ != "StoreSize" else {})})
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list | tuple):
        return [hostile(one) for one in value]
    return value


def section(text: str, name: str) -> str:
    """Return the markup of a section."""
    return text.partition(f'<section id="{name}"')[2].partition("</section>")[0]


def references(text: str) -> Iterator[str]:
    """Yield what makes a browser load something."""
    for pattern in (
        r"""\b(?:src|srcset|data|action|poster)\s*=\s*["'][^"']*""",
        r"url\([^)]*",
        r"@import[^;]*",
        r"https?://[^\s\"'<]*",
    ):
        yield from re.findall(pattern, text)
    yield from (href for href in re.findall(r'href="([^"]*)"', text) if not href.startswith("#"))


def test_the_page_refers_to_nothing_outside_of_itself(report: Report) -> None:
    text = page(report)
    assert set(references(text)) <= {"http://www.w3.org/2000/svg"}  # the name of SVG, which nothing loads
    assert not re.search(r"<(script|link|iframe|img|object|embed|base|form)\b", text)


def test_hostile_names_and_values_are_text(report: Report) -> None:
    evil = hostile(
        dataclasses.replace(
            report,
            diff=BranchDiff(
                "a", "b", "c", (1, 2), "epochs 1 to 2", ["d"], [OutputDiff("e", 1, 2, 3, 4, [Sample("f", ["g"], [])])]
            ),
        )
    )
    text = page(evil)
    parsed = Parsed(text)
    assert {tag for tag, _ in parsed.found} <= {tag for tag, _ in Parsed(page(report)).found}
    assert not [name for _, attributes in parsed.found for name in attributes if name.startswith("on")]
    assert "<script" not in text
    assert "alert(1)" in "".join(parsed.words)
    assert not re.search("[\u202e\x1b\x9b]", text)


def test_the_page_is_whole_and_says_what_it_shows_to_those_who_do_not_see_it(report: Report) -> None:
    parsed = Parsed(page(report))
    (html,) = parsed.all("html")
    assert html["lang"] == "en"
    assert len(parsed.all("h1")) == 1
    assert len(parsed.all("table")) == len(parsed.all("caption")) > 5
    assert parsed.all("svg")
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in parsed.all("svg"))
    assert all(head["scope"] == "col" for head in parsed.all("th"))
    ids = [attributes["id"] for _, attributes in parsed.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {f"#{one}" for one in ids} >= {link["href"] for link in parsed.all("a")}
    assert {one["id"] for one in parsed.all("section")} == set(SECTIONS) - {"expectations"}
    assert "prefers-color-scheme: dark" in page(report)
    assert "@media print" in page(report)


def test_the_verdict_comes_first(report: Report) -> None:
    text = page(report)
    assert text.index("<h1") < text.index('class="cards"') < text.index('class="verdict"') < text.index("<section")
    assert report.verdict[0].text.split(",")[0] in text[: text.index("</h1>")]


def test_a_report_of_a_year_of_hourly_runs_stays_small(report: Report) -> None:
    runs = [dataclasses.replace(report.runs[-1], run=f"main/{number}") for number in range(8_760)]
    clocks = [dataclasses.replace(report.clocks[-1], run=f"main/{number}") for number in range(400)]
    shown = list(report.open_windows.shown) * 20
    windows = dataclasses.replace(report.open_windows, shown=shown[:20], windows=10_000, results=1_000_000)
    text = page(dataclasses.replace(report, runs=runs, clocks=clocks, open_windows=windows))
    assert len(text.encode()) < 500_000
    assert section(text, "runs").count("<tr>") == 1 + 50
    assert "8,760" in section(text, "runs")


def test_the_grace_is_marked_and_each_grace_says_what_it_would_have_kept(report: Report) -> None:
    late = Lateness(
        node="n", windows="size 1h, grace 7m", grace_ms=420_000, records=1_000, mean_ms=5.0, largest_ms=9_000_000, late=60,
        counts_records=True, buckets=[Bucket(60_000, 100), Bucket(600_000, 50), Bucket(None, 1)], needed_ms=7_200_000,
    )  # fmt: skip
    text = page(dataclasses.replace(report, lateness=[late]))
    rows = re.findall(r'<td class="number">([^<]*)</td>' * 3, section(text, "lateness"))
    assert rows == [
        ("none", "84.9 %", "151"),
        ("1m", "94.9 %", "51"),
        ("7m (this job)", "94.0 %", "60"),
        ("10m", "99.9 %", "1"),
        ("2h", "100.0 %", "0"),
    ]
    assert "grace 7m</text>" in text


def test_the_command_writes_one_file_and_replaces_an_earlier_one(project: Bench, tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "r.html"
    for _ in range(2):
        answer = project.run("report", "counts", "--out", str(out))
        assert answer.code == 0, answer.err
        assert answer.out.splitlines()[0].startswith("Complete through 20")
        assert answer.out.splitlines()[1] == f"Report: {out}"
        assert [file.name for file in out.parent.iterdir()] == ["r.html"]
    assert Parsed(out.read_text(encoding="utf-8")).all("h1")
    assert out.stat().st_size < 2_000_000
