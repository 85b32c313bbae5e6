"""`python -m tests.measured`: compare each page of measurements with the results it is rendered from, and say how old they are.

A page that was edited by hand, or whose results were, is written anew with ``--write``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import sections
from tests.crash import finished, report
from tests.crash.suites import SUITES
from tests.matrix import __main__ as matrix

ROOT = Path(__file__).resolve().parents[1]


class Page(NamedTuple):
    """A page, what makes its text from the results, and their file."""

    path: Path
    render: Callable[[], str]
    results: Path


def pages() -> Iterable[Page]:
    """Yield the pages of `make bench`, `make year`, `make lost-worker`, `make crash` and `make matrix`."""
    for folder in ("bench", "year", "airflow"):
        path = ROOT / "tests" / folder / "RESULTS.md"
        yield Page(path, partial(sections.rendered, path), path.with_name(sections.FILE))
    yield Page(report.PAGE, partial(report.rendered, SUITES), finished.KEPT)
    yield Page(matrix.README, matrix.rendered, matrix.KEPT)


def main(*, write: bool) -> int:
    """Compare, and print the age of each page's results. Return 1 if a page differs."""
    differ = []
    for page in pages():
        name, text = page.path.relative_to(ROOT), page.render()
        print(f"{name}: {age(json.loads(page.results.read_text(encoding='utf-8')))}")
        if write:
            page.path.write_text(text, encoding="utf-8")
        elif page.path.read_text(encoding="utf-8") != text:
            differ.append(str(name))
    if differ:
        print(f"not what the results say: {', '.join(differ)}: python -m tests.measured --write")
    return int(bool(differ))


def age(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how many days old the newest and the oldest of some results are."""
    now = datetime.now(UTC).date()
    days = sorted((now - date.fromisoformat(result["date"])).days for result in results.values())
    return f"{len(days)} results, {days[0]} to {days[-1]} days old"


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv[1:]))
