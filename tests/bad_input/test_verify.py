"""`verify` finds every planted case of nondeterminism, and accepts deterministic ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewindow.app.branches import OTHER_SEED
from tests.bad_input import nondeterminism
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

Answers = dict[str, list[Any]]


def done(command: str, folder: Path, seed: str, engine: str) -> Answers:
    """Run a command with the planted jobs in a process with its own hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'lib'}:{ROOT}"}
    words = [sys.executable, "-m", "tests.bad_input.nondeterminism_process", command, str(folder), engine]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def both(folder: Path, engine: str) -> Answers:
    """Run the planted jobs, then verify them in another process."""
    made = done("run", folder, "0", engine)
    assert not {name: said for name, said in made.items() if said[0] != 0}
    return done("verify", folder, OTHER_SEED, engine)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return both(tmp_path_factory.mktemp("nondeterminism"), "local")


def test_every_planted_case_is_found(verified: Answers) -> None:
    assert {one.name: verified[one.name] for one in nondeterminism.FOUND if verified[one.name][0] != 1} == {}


def test_the_first_differing_row_is_shown(verified: Answers) -> None:
    for planted in nondeterminism.FOUND:
        ((_run, differences),) = json.loads(verified[planted.name][1]).items()
        assert differences, planted.name
        assert all("before" in words for words in differences.values()), differences


def test_deterministic_jobs_are_verified(verified: Answers) -> None:
    assert {one.name: verified[one.name][:2] for one in nondeterminism.FINE if verified[one.name][0] != 0} == {}


@pytest.mark.spark
@pytest.mark.cluster
def test_some_cases_on_spark(tmp_path: Path) -> None:
    found = both(tmp_path, "spark")
    assert {name: said[0] for name, said in found.items()} == dict(
        zip(nondeterminism.ON_SPARK, (1, 1, 1, 0), strict=True)
    )
