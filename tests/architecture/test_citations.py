"""Every cited law, decision about semantics and ADR exists on one of its pages, exactly once."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS, PACKAGE = ROOT / "docs", ROOT / "lib" / "rewindow"
LISTS = {
    "L": [DOCS / "internals/laws.md"],
    "D": [DOCS / "differences.md"],
    "ADR-": [DOCS / "internals/decisions.md", DOCS / "internals/history.md"],
}
CITED = re.compile(r"(?<![\w/.#-])(?<!U\+)(?P<list>L|D|ADR-)(?P<number>[0-9]{1,3})(?![\w.]*\w)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
PATH = re.compile(r"`(?P<path>(?:lib|tests|dags|docs)/[\w./-]*[\w/]|(?:\w+/)*\w+\.(?:py|md|yaml))`")

SUFFIXES = (".py", ".md", ".yaml", ".yml", ".toml")
# Recorded data and generated reports: a letter with a number there is not a citation.
DATA = ("tests/conformance/vectors/", "tests/conformance/oracle/java/", "tests/dsl/recorded/", "tests/crash/RESULTS.md")


@cache
def anchors(kind: str) -> list[str]:
    return [anchor for page in LISTS[kind] for anchor in ANCHOR.findall(page.read_text(encoding="utf-8"))]


def texts() -> list[Path]:
    found = [*ROOT.glob("*.md")]
    for folder in ("lib", "tests", "jobs", "dags", "conf", "docs"):
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return sorted(path for path in found if not path.relative_to(ROOT).as_posix().startswith(DATA))


def unknown(text: str) -> list[str]:
    """Return the citations in a text that are on no page."""
    return [one[0] for one in CITED.finditer(text) if one[0].lower() not in anchors(one["list"])]


def test_every_citation_is_on_its_page() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {', '.join(missing)} is on no page"
        for path in texts()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (missing := unknown(line))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", LISTS)
def test_each_list_has_every_number_once(kind: str) -> None:
    numbers = sorted(int(anchor.removeprefix(kind.lower())) for anchor in anchors(kind))
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", sorted((DOCS / "internals").glob("*.md")), ids=lambda page: page.name)
def test_the_paths_on_a_page_about_the_code_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    roots = (ROOT, PACKAGE)
    missing = [one["path"] for one in PATH.finditer(text) if not any((root / one["path"]).exists() for root in roots)]
    assert not missing, f"{page.name} names paths that do not exist: {missing}"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("L2, cut invariance (D8, ADR-12)", []),
        ("L7 and D26, ADR-999", ["L7", "D26", "ADR-999"]),
        ("D2+D6", []),
        ("0xD300 and LD12, U+D800, v.D99", []),
    ],
)
def test_a_citation_is_recognised(text: str, missing: list[str]) -> None:
    assert unknown(text) == missing
