"""What counts as another version of a job's code, and how the difference is named."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rewindow.control.code_version import reached_code
from rewindow.control.plan.job_diff import code_changes
from rewindow.control.plan.spec import version_of

JOB = """
from jobs import helpers
from rewindow import Processor, StreamsBuilder


class Doubles(Processor):
    \"\"\"Double.\"\"\"

    FACTOR = 2

    def init(self, context):
        self.context = context

    def process(self, record):
        self.context.forward(record.with_value(record.value * self.FACTOR))


def above(limit):
    return lambda key, value: value > limit


def build():
    builder = StreamsBuilder()
    numbers = builder.stream("numbers").filter(lambda key, value: helpers.is_small(value)).filter(above(7))
    numbers.process(Doubles, name="doubles").map_values(str.upper).to("out")
    return builder.build()
"""
HELPERS = """
LIMIT = 3
UNUSED = 1


def is_small(value):
    return value < LIMIT


def unused(value):
    return value
"""

Versions = Callable[..., dict[str, str]]


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Versions]:
    """Return a function that gives the code version of the job after replacements in its modules."""
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "jobs"}
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/__init__.py").touch()

    def make(*changes: tuple[str, str], job: str = JOB) -> dict[str, str]:
        texts = {"job": job, "helpers": HELPERS}
        for old, new in changes:
            assert any(old in text for text in texts.values())
            texts = {name: text.replace(old, new) for name, text in texts.items()}
        for name, text in texts.items():
            (tmp_path / f"jobs/{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.split(".")[0] == "jobs"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        return reached_code(importlib.import_module("jobs.job").build(), tmp_path).version

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "jobs"]:
        del sys.modules[name]
    sys.modules.update(kept)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value < LIMIT", "value <= LIMIT", ["is_small in jobs/helpers.py changed"]),
        ("LIMIT = 3", "LIMIT = 4", ["LIMIT in jobs/helpers.py changed"]),
        ("above(7)", "above(8)", ["value of 'limit' in lambda of node 'filter-2' changed"]),
        ("value > limit", "value >= limit", ["lambda of node 'filter-2' in jobs/job.py changed"]),
        (
            "helpers.is_small(value)",
            "not helpers.is_small(value)",
            ["lambda of node 'filter-1' in jobs/job.py changed"],
        ),
        ("record.value *", "record.value +", ["Doubles.process in jobs/job.py changed"]),
        ("FACTOR = 2", "FACTOR = 3", ["Doubles in jobs/job.py changed"]),
        ("class Doubles(Processor)", "class Doubles(helpers.Base)", None),
        (
            "str.upper",
            "str.lower",
            [
                "node 'map-values-1' calls builtins.str.lower is new",
                "node 'map-values-1' calls builtins.str.upper is gone",
            ],
        ),
    ],
)
def test_a_change_is_named(version: Versions, old: str, new: str, said: list[str] | None) -> None:
    if said is None:
        with pytest.raises(AttributeError, match="Base"):
            version((old, new))
        return
    assert code_changes(version(), version((old, new))) == said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Double."""', '"""Double a value: the docstring is not code."""'),
        ("    return value < LIMIT", "    # A comment.\n    return (value\n            < LIMIT)"),
        ("UNUSED = 1", "UNUSED = 2"),
        ("def unused(value):\n    return value", "def unused(value):\n    return -value"),
        ("def build():", "VERBOSE = True\n\n\ndef build():"),
    ],
)
def test_what_the_job_does_not_run_is_no_change(version: Versions, old: str, new: str) -> None:
    assert code_changes(version(), version((old, new))) == []


def test_a_new_helper_of_a_changed_function_is_named_too(version: Versions) -> None:
    changed = version(("return value < LIMIT", "return unused(value) < LIMIT"))
    assert code_changes(version(), changed) == [
        "is_small in jobs/helpers.py changed",
        "unused in jobs/helpers.py is new",
    ]


def test_lambdas_on_one_line_are_told_apart(version: Versions) -> None:
    text = """
    from rewindow import StreamsBuilder


    def build():
        builder = StreamsBuilder()
        builder.stream("n").filter(lambda k, v: v > 1).filter(lambda k, v: v < 9).to("out")
        return builder.build()
    """
    job = textwrap.dedent(text)
    changed = version(("v < 9", "v < 8"), job=job)
    assert code_changes(version(job=job), changed) == ["lambda of node 'filter-2' in jobs/job.py changed"]


def test_every_python_gives_the_same_digest(version: Versions) -> None:
    assert version_of(version()) == "bc7fe7aa"
    assert version_of({}) == ""


def test_a_run_whose_code_is_not_known_is_compared_without_it(version: Versions) -> None:
    assert code_changes({}, version()) == []


def test_functions_that_choose_partitions_keys_and_topics_belong_to_the_code(version: Versions) -> None:
    job = """
from rewindow import StreamsBuilder


def build():
    builder = StreamsBuilder()
    table = builder.global_table("rows", store="rows")
    moved = builder.stream("numbers").repartition(name="again", partitioner=lambda t, key, value, count: 100)
    joined = moved.join(table, lambda key, value: 200, lambda one, row: 300)
    joined.to(lambda key, value: "out" if value != 400 else "other", outputs=["out", "other"])
    return builder.build()
"""
    before = version(job=job)
    for number in (100, 200, 300, 400):
        assert version((str(number), "7"), job=job) != before
