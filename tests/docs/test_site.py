"""The site builds without a warning, and every link of README and its kin leads somewhere; MkDocs checks those of the site."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.docs.blocks import DOCS, ROOT

OUTSIDE_THE_SITE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
MADE = {"reference/api.md"}
"""Pages that a hook adds to those of `docs/`."""
LINK = re.compile(r"(?<!\\)\]\((?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LONGEST = 150


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: those of its headings and those that it writes itself."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("name", OUTSIDE_THE_SITE)
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    for link in LINK.finditer(CODE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link["path"]:
            continue
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        assert target.exists(), f"{name}: {link[0]} leads nowhere"
        if link["anchor"]:
            assert link["anchor"] in anchors(target), f"{name}: {link[0]}: there is no such heading"


def build(site: Path, *config: str) -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("MkDocs is not installed: make env")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *config]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


DEAD = {
    "[dead](nothing.md)": "'nothing.md'",
    "[dead](concepts.md#nothing)": "'concepts.md#nothing'",
    "[dead](reference/api.md#nothing)": "'reference/api.md#nothing'",
    "![](nothing.svg)": "'nothing.svg'",
}


def test_dead_links_fail_the_build_and_each_is_named(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    with (tmp_path / "docs/index.md").open("a") as page:
        page.write("".join(f"\n{text}\n" for text in DEAD))
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT}/mkdocs.yml\nhooks: [{ROOT}/tests/docs/site_hook.py]\n")
    done = build(tmp_path / "site", "-f", str(config))
    assert done.returncode == 1
    assert [says for says in DEAD.values() if says not in done.stderr] == [], done.stderr


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = build(tmp_path / "site")
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr
    built = {path.relative_to(tmp_path / "site").with_suffix(".md").as_posix() for path in tmp_path.rglob("*.html")}
    assert built - {"404.md"} == MADE | {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    loaded = [
        url
        for path in tmp_path.rglob("*.html")
        for url in re.findall(r'(?:src|href)="(https?://[^"]+)"', path.read_text())
    ]
    assert [url for url in loaded if "mkdocs.org" not in url] == [], "a page needs the network"


@pytest.mark.parametrize("picture", sorted(DOCS.rglob("*.svg")), ids=lambda picture: picture.name)
def test_a_picture_has_a_title_and_colours_for_the_dark(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314 - our own file
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert "prefers-color-scheme: dark" in text


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST
