"""No page, message, comment or name uses a retired term; each failure names the replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.vocabulary import Finding, in_module_name, in_source, in_text

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("lib", "jobs", "dags", "tests")
PAGES = (
    "*.md",
    "Makefile",
    "pyproject.toml",
    "docs/**/*.md",
    "docs/*.yaml",
    "lib/**/*.yaml",
    "conf/**/*.y*ml",
    "tests/**/*.md",
)
# These may contain retired terms: the tables of terms, and the section of old and new names in CHANGELOG.
ABOUT_TERMS = {"tests/architecture/vocabulary.py", "tests/architecture/test_vocabulary.py"}
OLD_TO_NEW = ("<!-- old names: begin -->", "<!-- old names: end -->")

ALLOWED = {
    "lib/rewindow/control/ingest/land.py": {"land"},  # the command's name
    "tests/airflow/test_openlineage.py": {"lineage"},  # in the names of functions of Airflow's provider
}
"""By file: words that it may use with another meaning."""


def files() -> Iterator[tuple[str, Path]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in ABOUT_TERMS:
                yield name, path


def pages() -> Iterator[tuple[str, str]]:
    for path in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        begin, end = (text.find(marker) for marker in OLD_TO_NEW)
        yield name, text if end < 0 else text[:begin] + text[end:]


def shown(name: str, findings: Iterable[Finding]) -> list[str]:
    allowed = ALLOWED.get(name, set())
    return [one.text(name) for one in findings if one.word not in allowed]


@cache
def in_file(path: Path) -> list[Finding]:
    return list(in_source(path.read_text(encoding="utf-8")))


def test_pages_use_no_retired_term() -> None:
    wrong = [line for name, text in pages() for line in shown(name, in_text(text))]
    assert not wrong, "\n".join(wrong)


def test_modules_have_no_retired_name() -> None:
    wrong = [line for name, _ in files() for line in shown(name, in_module_name(name))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "kind",
    [
        "text",
        "class",
        "function",
        "variable",
    ],
)
def test_code_uses_no_retired_term(kind: str) -> None:
    wrong = [line for name, path in files() for line in shown(name, (one for one in in_file(path) if one.kind == kind))]
    assert not wrong, f"{len(wrong)} findings:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("lineage = 1", [("lineage", "branch")]),
        ("class RecordLane:\n    pass", [("RecordLane", "execution")]),
        ("'''As law 3 says.'''", [("law 3", "L1 to L6")]),
        ("x = 'the aligned source'  # DESIGN.md, 68", [("aligned source", ""), ("DESIGN.md, 68", "ADR-n")]),
        ("def f(moment):\n    place = moment", [("moment", "record context"), ("place", "")]),
        ("_NO_CELLS = ()", [("_NO_CELLS", "values")]),
        ("pytest.fixture(scope='module')", []),
        ("'in the first place, damaged: a planet and a blend, settled in a flaw 3'", []),
        ("def test_a_record_has_its_place():\n    pass", []),
        ("workplace = replace = placeholder = 1", []),
    ],
)
def test_a_retired_term_is_found(source: str, found: list[tuple[str, str]]) -> None:
    findings = sorted(in_source(source), key=lambda one: one.line)
    assert [one.term for one in findings] == [term for term, _ in found]
    assert all(say in one.instead for one, (_, say) in zip(findings, found, strict=True))
