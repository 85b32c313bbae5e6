"""`TopologyTestDriver.cut` builds the topology again, and so finds state that code keeps outside stores."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rewindow import StreamsBuilder, Topology
from rewindow.testing import TopologyTestDriver, Transcript, TranscriptError, check
from tests.bad_input.nondeterminism import NEIGHBOURS, Planted
from tests.refusals import containing, refused

COUNTING = """
from kept.state import seen
from rewindow import StreamsBuilder

class Totals:
    seen = 0

def score(row, held=[]):
    {body}

def build(topic="out"):
    builder = StreamsBuilder()
    builder.stream("in").map_values(score).to(topic)
    return builder.build()
"""
CASES = {
    "a list of another module": ("seen.append(row)\n    return len(seen)", "kept.job.seen, kept.state.seen"),
    "a field of a class": ("Totals.seen += 1\n    return Totals.seen", "kept.job.Totals.seen"),
    "a default": ("held.append(row)\n    return len(held)", "kept.job.score"),
    "an attribute of a function": ("score.n = getattr(score, 'n', 0) + 1\n    return score.n", "kept.job.score"),
    "a global": ("global n\n    n = globals().get('n', 0) + 1\n    return n", None),
}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "__init__.py").write_text("")
    (tmp_path / "kept" / "state.py").write_text("seen = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "kept"
    for name in [name for name in sys.modules if name.partition(".")[0] == "kept"]:
        del sys.modules[name]


def job(folder: Path, text: str) -> ModuleType:
    (folder / "job.py").write_text(text)
    return importlib.import_module("kept.job")


def sent(driver: TopologyTestDriver, *, cut: bool) -> list[object]:
    driver.pipe("in", "k", 1, 0)
    if cut:
        driver.cut()
    driver.pipe("in", "k", 2, 1)
    return [record.value for record in driver.read("out")]


@pytest.mark.parametrize("case", CASES)
def test_a_count_outside_stores_starts_again_after_a_cut(kept: Path, case: str) -> None:
    body, lost = CASES[case]
    module = job(kept, COUNTING.format(body=body))
    driver = TopologyTestDriver(module.build)
    if lost is None:
        assert sent(driver, cut=True) == [1, 1]
        return
    with pytest.warns(
        RuntimeWarning, match=rf"the cut lost what {lost} held, as every new process does: keep state in a s"
    ):
        assert sent(driver, cut=True) == [1, 1]
    assert sys.modules["kept.job"] is module


def test_the_next_cut_names_what_the_new_modules_held(kept: Path) -> None:
    driver = TopologyTestDriver(job(kept, COUNTING.format(body=CASES["a field of a class"][0])).build)
    driver.cut()
    driver.pipe("in", "k", 1, 0)
    with pytest.warns(RuntimeWarning, match=r"kept.job.Totals.seen"):
        driver.cut()
    driver.cut()


def test_code_without_state_passes_a_cut_without_a_warning(kept: Path) -> None:
    driver = TopologyTestDriver(job(kept, COUNTING.format(body="return row")).build)
    assert sent(driver, cut=True) == [1, 2]


@pytest.mark.filterwarnings("ignore:the cut lost")
@pytest.mark.parametrize("cut", [False, True])
def test_a_transcript_says_that_only_its_cut_fails(kept: Path, *, cut: bool) -> None:
    job(kept, COUNTING.format(body=CASES["a default"][0]))
    steps = ({"input": ["in", "k", 1, 0]}, {"expect": [["out", "k", 1, 0]]})
    more = ({"input": ["in", "k", 2, 1]}, {"expect": [["out", "k", 2, 1]]})
    case = Transcript("counts", (*steps, *more), "kept.job:build")
    if not cut:
        check(case)
        return
    with pytest.raises(
        TranscriptError, match=r"sent different records\n(.|\n)*Without cuts the case passes: code keeps state"
    ):
        check(case, cut=True)


@pytest.mark.filterwarnings("ignore:the cut lost")
@pytest.mark.parametrize(
    "planted", [one for one in NEIGHBOURS if "partition" not in one.name], ids=lambda one: one.name
)
def test_jobs_that_two_runs_make_differ_from_one_differ_when_cut(kept: Path, planted: Planted) -> None:
    """Except for the first partition of a process, which takes several processes."""

    def played(*, cut: bool) -> list[object]:
        (kept / "job.py").write_text(planted.module.replace("row.x", "row").replace("record.value.x", "record.value"))
        sys.modules.pop("kept.job", None)
        driver = TopologyTestDriver(importlib.import_module("kept.job").build_topology)
        for number in range(12):
            driver.pipe("events", "k", number, number)
            if cut and number % 4 == 3:
                driver.cut()
        return [record.value for record in driver.read("totals")]

    assert played(cut=True) != played(cut=False)


def test_a_function_that_cannot_be_found_again_is_refused(kept: Path) -> None:
    module = job(kept, COUNTING.format(body="return row"))
    with refused("cut-function-not-importable", function=containing("lambda")):
        TopologyTestDriver(lambda: module.build("other"))
    driver = TopologyTestDriver(module.build)
    (kept / "job.py").unlink()
    with refused("module-not-importable-again", module="kept.job"):
        driver.cut()
    assert sys.modules["kept.job"] is module


def test_a_topology_that_differs_in_each_process_is_refused(kept: Path) -> None:
    module = job(kept, COUNTING.format(body="return row") + "\nimport itertools\nnumbers = itertools.count()\n")
    driver = TopologyTestDriver(module.build)
    (kept / "job.py").write_text(COUNTING.format(body="return row").replace('topic="out"', 'topic="another"'))
    with refused("topology-differs-when-rebuilt", module="kept.job", function="build"):
        driver.cut()


def build_here() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return builder.build()


def test_a_function_of_the_test_module_is_imported_again() -> None:
    assert sent(TopologyTestDriver(build_here), cut=True) == [1, 2]
