"""Errors in Spark's workers: code that fails, refers to what cannot be pickled, or ends its process.

Workers live on between cases and keep imported modules, so each case has a module with a distinct name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rewindow.app.open_project import OpenProject
from tests.bad_input import scene
from tests.bad_input.cases import Case
from tests.bad_input.nondeterminism import MODULE, SCORED
from tests.bad_input.scene import Bench

GOOD = "def score(row):\n    return str(row.x * 2)\n"
SHUFFLE_READER, BY_SPARK = "source: shuffle\n", "inline: 0\n"

_numbers = count()
_LOUD = "LOUD" * 5_000


@contextmanager
def on_spark(session: SparkSession) -> Iterator[None]:
    """Let all projects share one Spark session."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OpenProject, "spark", session)
        yield


def make_template(root: Path) -> Bench:
    """Create the project: one hour is replayed, one is landed, and one waits in the source."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", scene.FEED)
    bench.write("conf/jobs/counts.yaml", scene.JOB)
    bench.write("conf/targets/local.yaml", scene.TARGET + BY_SPARK)
    with_code(bench, GOOD)
    for number in (0, 1):
        bench.rows(f"h{number}", scene.hour(number))
        bench.done(*("land activity", "run counts")[: 2 - number])
    bench.rows("h2", scene.hour(2))
    return bench


def with_code(bench: Bench, code: str, verbs: str = SCORED) -> None:
    """Write a module with this code, and let the job use it."""
    name = f"bench_{next(_numbers)}"
    bench.write(f"{name}.py", MODULE.format(code=code, verbs=verbs))
    bench.write("conf/jobs/counts.yaml", scene.JOB.replace("bench_job", name))


def _code(name: str, slug: str, code: str, *, verbs: str = SCORED, branch: str = "main", **facts: Any) -> Case:
    given = lambda bench: with_code(bench, code, verbs)  # noqa: E731 - a case is data
    return Case(name, f"run counts --branch {branch}", slug, facts, given)


def _score(name: str, slug: str, body: str, before: str = "", **facts: Any) -> Case:
    return _code(name, slug, f"{before}\ndef score(row):\n    {body}\n", **facts)


FAILS = [
    _score("raises", "node-failed", "raise ValueError('no {a} %s')", node="scores"),
    _score("wants more memory than there is", "node-out-of-memory", "return len(bytearray(10**15))"),
    _code(
        "keeps a lock in a store",
        "value-type-undeclared",
        "from threading import Lock\ndef add(key, row, total):\n    return {'x': Lock()}",
        branch="other",
        verbs='.group_by_key().aggregate(dict, add, store="sums").to_stream()',
        type="lock",
    ),
]
"""Errors keep code and facts on their way through Spark. Which there are is tested without it."""
ENDS = [
    _score("os._exit as if all were well", "worker-killed", "os._exit(0)", "import os"),
    _score("SIGKILL", "worker-killed", "os.kill(os.getpid(), 9)", "import os"),
    _score("a crash in native code", "worker-killed", "return ctypes.string_at(0)", "import ctypes"),
]
"""Ways in which a worker ends in the middle of its records."""
BUILDS = [
    _code(
        "a module that only the driver can import",
        "topology-import-failed",
        f"import os\nif os.getpid() != {os.getpid()}:\n    raise ImportError('only here')\n{GOOD}",
    ),
    _code(
        "another topology in each process",
        "topology-not-deterministic",
        f"import os\n{GOOD}",
        branch="other",
        verbs='.map_values(lambda row: score(row), name=f"scores-{os.getpid()}")',
    ),
]
FINE = [
    _score("prints a lot", "", f"print({_LOUD!r}); return str(row.x * 2)"),
    _score(
        "writes to what is no longer its own",
        "",
        f"os.write(1, {_LOUD!r}.encode()); return str(row.x * 2)",
        "import os",
    ),
    _score("complains a lot", "", f"sys.stderr.write({_LOUD!r}); return str(row.x * 2)", "import sys"),
    _code(
        "an unpicklable topology",
        "",
        f"import sqlite3, threading\nlock, file = threading.Lock(), open(__file__)\ndb = sqlite3.connect(':memory:')\n{GOOD}",
        verbs='.map_values(lambda row, held=(n for n in [lock, file, db]): score(row), name="scores")',
    ),
]
"""Harmless cases: topologies are not pickled, because each process builds its own."""


def with_shuffle_reader(case: Case) -> Case:
    """Return the case with its log read by Spark."""

    def given(bench: Bench) -> None:
        case.given(bench)
        bench.write("conf/targets/local.yaml", scene.TARGET + SHUFFLE_READER)

    return replace(case, name=f"{case.name}, read by Spark", given=given)
