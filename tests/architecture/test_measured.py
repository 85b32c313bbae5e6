from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import measured
from tests.bench.sections import FILE, load, rendered, write_section

BODY = "### A bench\n\n2026-01-05, 2 x a machine. Ratio **0.5**."


@pytest.mark.parametrize("page", list(measured.pages()), ids=lambda page: page.results.parent.name)
def test_a_page_of_measurements_is_what_its_results_say(page: measured.Page) -> None:
    assert page.path.read_text(encoding="utf-8") == page.render(), "python -m tests.measured --write"
    for name, result in json.loads(page.results.read_text(encoding="utf-8")).items():
        assert {"date", "commit", "machine"} <= set(result), name


def test_an_edited_page_differs_from_its_results(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text("# Results\n")
    write_section(page, "a", "python -m tests.bench", BODY)
    write_section(page, "b", "python -m tests.bench", BODY)
    assert rendered(page) == page.read_text()
    page.write_text(page.read_text().replace("0.5", "0.4", 1))
    assert rendered(page) != page.read_text()


def test_a_measurement_replaces_the_earlier_one_of_its_name(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text("# Results\n")
    for ratio in ("0.5", "0.25"):
        write_section(page, "a", "python -m tests.bench", BODY.replace("0.5", ratio))
    assert page.with_name(FILE).exists()
    assert list(load(page)) == ["a"]
    assert "0.25" in page.read_text()
    assert "0.5*" not in page.read_text()
