"""The code and the configuration that the pages show work: each Python block is executed, each file is validated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewindow.app.new_project import Example, create_project
from rewindow.config.feed import FeedConfig
from rewindow.config.job import JobConfig
from rewindow.config.load import read_model
from rewindow.config.target import TargetConfig
from tests.docs.blocks import Block, blocks_of, pages, python_of

LANGUAGES = {"python", "yaml", "csv", "console", "text", "java"}
"""`text` is output or a form to fill in, `java` is Kafka's. All others are executed or validated."""
ELSEWHERE = {
    "docs/deployment/airflow.md": "tests/airflow/test_scheduler.py",
    "docs/differences.md": "tests/conformance/test_examples.py",
    "docs/guides/notebooks.md": "tests/api/test_notebook.py",
    "docs/notebook.md": "tests/api/test_notebook.py",
}
"""Pages whose Python another test executes: in a real Airflow, next to Kafka's rows, in a landed project, in a notebook."""
MODELS = {"feed": FeedConfig, "job": JobConfig, "target": TargetConfig}
SMALLEST = {"job": "example", "topology": "jobs.example:build", "feed": "example"}
WITH_PYTHON = [page for page in pages() if python_of(page) and page not in ELSEWHERE]
CONFIGURATION = [
    pytest.param(block, id=f"{page}-{number}")
    for page in pages()
    for number, block in enumerate(one for one in blocks_of(page) if one.language == "yaml")
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project that `rewindow init` creates, as the working directory; its `jobs` hides ours."""
    create_project(tmp_path, Example.WINDOWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "jobs"}
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "jobs"]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page: str) -> None:
    assert {block.language for block in blocks_of(page)} <= LANGUAGES


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_the_python_of_a_page_runs_and_its_tests_pass(page: str, project: Path) -> None:
    for block in blocks_of(page):
        if "file" in block.markers:
            path = project / block.markers["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in python_of(page):
        if "after" in block.markers:
            for earlier in python_of(f"docs/{block.markers['after']}"):
                exec(earlier.text, namespace)  # noqa: S102 - the page's own code
        exec(block.text, namespace)  # noqa: S102 - the page's own code
    for name, test in namespace.items():
        if name.startswith("test_"):
            for arguments in _parameters(test):
                test(**arguments)


def _parameters(test: Any) -> list[dict[str, Any]]:
    """Return the arguments of each call of a test: the product of its `parametrize` marks."""
    calls: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        name, values = mark.args
        calls = [{**call, name: value} for call in calls for value in values]
    return calls


@pytest.mark.parametrize("block", CONFIGURATION)
def test_the_configuration_of_a_page_is_valid(block: Block, tmp_path: Path) -> None:
    values = yaml.safe_load(block.text)
    if "transcript" in values:
        return  # its page executes it
    kind = next((kind for kind in MODELS if next(iter(values)) == kind), "")
    if not kind:  # some keys of a job's file
        kind, values = "job", {**SMALLEST, **values}
    path = tmp_path / "shown.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    read_model(path, "the page", MODELS[kind])


def test_the_tutorial_shows_the_files_that_init_creates(project: Path) -> None:
    shown: dict[str, str] = {}
    for block in blocks_of("docs/tutorial.md"):
        if "file" in block.markers:
            shown.setdefault(block.markers["file"], block.text)
    created = {name: (project / name).read_text() for name in shown if (project / name).exists()}
    assert sorted(set(shown) - set(created)) == ["data/orders/next_days.csv"]
    assert {name: shown[name] for name in created} == created
