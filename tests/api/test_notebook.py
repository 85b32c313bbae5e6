"""The notebook of the site and the guide about it do what they show."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.shop import create_shop
from tests.conftest import ROOT
from tests.docs.blocks import python_of
from tests.docs.notebook import NOTEBOOK

GUIDE = "docs/guides/notebooks.md"


def needs_jupyter() -> None:
    if importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None:
        pytest.skip("nbclient and ipykernel are not installed: make env")


def test_the_notebook_shows_what_it_did_when_it_was_stored() -> None:
    needs_jupyter()
    paths = os.pathsep.join([str(ROOT / "lib"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "tests.docs.notebook", "--check"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "JUPYTER_PLATFORM_DIRS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_notebook_names_no_folder_of_a_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not [part for part in ("/tmp/", "/home/", "/root/", str(ROOT)) if part in text]  # noqa: S108


def test_the_python_of_the_guide_runs_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(create_shop(tmp_path / "shop"))
    namespace = {"__name__": "page"}
    for block in python_of(GUIDE):
        if "project.spark" not in block.text:
            exec(block.text, namespace)  # noqa: S102 - the page's own code
    assert "spark" not in vars(namespace["project"]._context._project)
    assert (tmp_path / "shop/daily_orders.svg").is_file()


@pytest.mark.spark
def test_all_python_of_the_guide_runs(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.chdir(create_shop(tmp_path / "shop"))
    namespace = {"__name__": "page"}
    for block in python_of(GUIDE):
        exec(block.text, namespace)  # noqa: S102 - the page's own code
    assert "|     ann|" in capfd.readouterr().out
