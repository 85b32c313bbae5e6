"""Open every page of the built site in Chromium, from disk: ``make docs``, then ``python -m tests.docs.browser FOLDER``.

It checks links, anchors and pictures, that nothing comes from the network, and that no page is wider than the screen. It writes
a screenshot of each page in light and dark, at three widths, to the folder.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tests.airflow.browser import Browser
from tests.docs.blocks import ROOT

SITE = ROOT / "build/site"
WIDTHS = (390, 820, 1400)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
READ = """JSON.stringify({
    ids: [...document.querySelectorAll('[id]')].map(one => one.id),
    links: [...document.querySelectorAll('a[href]')].map(one => one.href),
    missing: [...document.images].filter(one => !one.naturalWidth).map(one => one.src),
    remote: performance.getEntriesByType('resource').map(one => one.name).filter(name => name.startsWith('http')),
    too_wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
})"""


class Seen(NamedTuple):
    """A page as the browser showed it."""

    path: Path
    values: dict[str, Any]


def main(folder: Path) -> int:
    """Look at all pages; 1 if something is wrong with one, 78 if there is no browser or no site."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    pages = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")
    if program is None or not pages:
        sys.stderr.write(
            "there is no Chromium: apt-get install chromium\n" if pages else "there is no site: make docs\n"
        )
        return 78
    seen = [one for width in WIDTHS for one in look(program, pages, width, folder)]
    wrong = sorted({*dead(seen), *(problem for one in seen for problem in problems(one))})
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{len(pages)} pages at {len(WIDTHS)} widths, in light and dark: {len(wrong)} problems\n")
    return 1 if wrong else 0


def look(program: str, pages: Sequence[Path], width: int, folder: Path) -> Iterator[Seen]:
    """Open each page in light and in dark, and take its screenshot."""
    with Browser(program, width=width, height=900) as browser:
        for colours in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": colours}
            browser.ask("Emulation.setEmulatedMedia", features=[feature])
            for page in pages:
                browser.goto(page.as_uri())
                browser.until(f"location.href == {json.dumps(page.as_uri())} && document.readyState == 'complete'")
                name = "-".join(page.relative_to(SITE).with_suffix("").parts)
                (folder / colours / str(width)).mkdir(parents=True, exist_ok=True)
                browser.shoot(folder / colours / str(width) / f"{name}.png")
                yield Seen(page, json.loads(browser.value(READ)))


def dead(seen: Sequence[Seen]) -> Iterator[str]:
    """Yield each link to a file or an anchor that does not exist."""
    ids = {str(one.path): set(one.values["ids"]) for one in seen}
    for page in seen:
        for link in page.values["links"]:
            parts = urlsplit(link)
            target, anchor = unquote(parts.path), unquote(parts.fragment)
            is_there = Path(target).is_file() and (not anchor or anchor in ids[target])
            if parts.scheme == "file" and not is_there:
                yield f"{page.path.relative_to(SITE)}: {link} leads nowhere"


def problems(page: Seen) -> Iterator[str]:
    """Yield what else is wrong with a page."""
    for key in ("missing", "remote"):
        for url in page.values[key]:
            yield f"{page.path.relative_to(SITE)}: {key}: {url}"
    if page.values["too_wide"] > 0:
        yield f"{page.path.relative_to(SITE)} is wider than the screen by {page.values['too_wide']} pixels"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/screenshots"))
