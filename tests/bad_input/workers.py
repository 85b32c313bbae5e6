"""Errors in Spark's workers: code that fails, refers to what cannot be pickled, or ends its process; corrupted logs.

Workers live on between cases and keep imported modules, so each case has a module with a distinct name.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from rewindow.app.open_project import OpenProject
from tests.bad_input import scene
from tests.bad_input.cases import Case
from tests.bad_input.scene import Bench

MODULE = """\
{code}

def build_topology():
    from rewindow import StreamsBuilder

    builder = StreamsBuilder()
    builder.stream("events"){verbs}.to("totals")
    return builder.build()
"""
SCORED = '.map_values(lambda row: score(row), name="scores")'
GOOD = "def score(row):\n    return str(row.x * 2)\n"
SHUFFLE_READER, BY_SPARK = "source: shuffle\n", "inline: 0\n"

_numbers = count()
_FIX = "Nothing was committed: fix the code and run again, with `--accept-changes` if earlier runs had it"
_ENDED = ("a Python worker was killed, or the job's code ended it", "Nothing was committed: run again")
_LOUD = "LOUD" * 5_000


@contextmanager
def on_spark(session: SparkSession) -> Iterator[None]:
    """Let all projects share one Spark session."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OpenProject, "spark", session)
        yield


def make_template(root: Path) -> Bench:
    """Create the project: one hour is replayed, one is landed, and one waits in the source. The source is also a Delta table."""
    bench = Bench(root)
    bench.write("conf/feeds/activity.yaml", scene.FEED)
    bench.write("conf/feeds/other.yaml", OTHER)
    bench.write("conf/jobs/counts.yaml", scene.JOB)
    bench.write("conf/targets/local.yaml", scene.TARGET + BY_SPARK)
    with_code(bench, GOOD)
    for number in (0, 1):
        bench.rows(f"h{number}", scene.hour(number))
        append(bench, scene.hour(number))
        for words in (("land", "activity"), ("land", "other"), ("run", "counts"))[: 3 - number]:
            answer = bench.run(*words)
            assert answer.code == 0, answer.err
    bench.rows("h2", scene.hour(2))
    append(bench, scene.hour(2))
    return bench


def with_code(bench: Bench, code: str, verbs: str = SCORED) -> None:
    """Write a module with this code, and let the job use it."""
    name = f"bench_{next(_numbers)}"
    bench.write(f"{name}.py", MODULE.format(code=code, verbs=verbs))
    bench.write("conf/jobs/counts.yaml", scene.JOB.replace("bench_job", name))


def _code(name: str, exit_code: int, code: str, *says: str, verbs: str = SCORED, branch: str = "main") -> Case:
    given = lambda bench: with_code(bench, code, verbs)  # noqa: E731 - a case is data
    return Case(name, f"run counts --branch {branch}", exit_code, says, given)


def _score(name: str, exit_code: int, body: str, *says: str, before: str = "") -> Case:
    return _code(name, exit_code, f"{before}\ndef score(row):\n    {body}\n", *says)


FAILS = [
    _score("raises", 65, "raise ValueError('no {a} %s')", "node 'scores' failed at events offset", "no {a} %s", _FIX),
    _score("raises a very long message", 65, "raise ValueError('y' * 10**7)", "yyy ...", _FIX),
    _score(
        "raises what has no words",
        65,
        "raise Mine",
        "(its message failed with KeyError)",
        before="class Mine(Exception):\n    def __str__(self): raise KeyError",
    ),
    _score("raises no Exception", 65, "raise Mine('x')", "Mine: x", _FIX, before="class Mine(BaseException): pass"),
    _score("is interrupted", 65, "raise KeyboardInterrupt", "KeyboardInterrupt"),
    _score("exits", 65, "raise SystemExit(0)", "SystemExit: 0", _FIX),
    _score("recurses forever", 65, "return score(row)", "RecursionError", _FIX),
    _score("wants more memory than there is", 71, "return len(bytearray(10**15))", "ran out of memory", "fewer cores"),
    _score("returns an object", 65, "return object()", "of type object cannot be stored", "use numbers, text"),
    _score("returns a lock", 65, "return Lock()", "of type lock cannot be stored", before="from threading import Lock"),
    _score("returns a generator", 65, "return (n for n in range(3))", "of type generator cannot be stored"),
    _score("returns half a character", 65, "return '\\ud800'", "half of a surrogate pair", "remove it"),
    _code("is no function at all", 65, "score = 5", "TypeError", _FIX),
    _code(
        "keeps a lock in a store",
        65,
        "from threading import Lock\ndef add(key, row, total):\n    return {'x': Lock()}",
        "store 'sums', key",
        "keep numbers, text",
        branch="other",
        verbs='.group_by_key().aggregate(dict, add, store="sums").to_stream()',
    ),
]
ENDS = [
    _score("os._exit", 71, "os._exit(3)", *_ENDED, before="import os"),
    _score("os._exit as if all were well", 71, "os._exit(0)", *_ENDED, before="import os"),
    _score("SIGKILL", 71, "os.kill(os.getpid(), 9)", *_ENDED, before="import os"),
    _score("SIGTERM", 71, "os.kill(os.getpid(), 15)", *_ENDED, before="import os"),
    _score(
        "a crash in native code",
        71,
        "return ctypes.string_at(0)",
        "Segmentation fault",
        *_ENDED,
        before="import ctypes",
    ),
    _score("abort", 71, "os.abort()", "Aborted", *_ENDED, before="import os"),
]
"""Ways in which a worker ends in the middle of its records."""
BUILDS = [
    _code(
        "a module that only the driver can import",
        78,
        f"import os\nif os.getpid() != {os.getpid()}:\n    raise ImportError('only here')\n{GOOD}",
        "ImportError: only here",
        "workers import it too",
    ),
    _code(
        "another topology in each process",
        70,
        f"import os\n{GOOD}",
        "the worker built another topology than the driver",
        branch="other",
        verbs='.map_values(lambda row: score(row), name=f"scores-{os.getpid()}")',
    ),
]
FINE = [
    _score("prints a lot", 0, f"print({_LOUD!r}); return str(row.x * 2)"),
    _score(
        "writes to what is no longer its own",
        0,
        f"os.write(1, {_LOUD!r}.encode()); return str(row.x * 2)",
        before="import os",
    ),
    _score("complains a lot", 0, f"sys.stderr.write({_LOUD!r}); return str(row.x * 2)", before="import sys"),
    _code(
        "an unpicklable topology",
        0,
        f"import sqlite3, threading\nlock, file = threading.Lock(), open(__file__)\ndb = sqlite3.connect(':memory:')\n{GOOD}",
        verbs='.map_values(lambda row, held=(n for n in [lock, file, db]): score(row), name="scores")',
    ),
]
"""Harmless cases: topologies are not pickled, because each process builds its own."""

TABLE = "raw/events"
OTHER = scene.FEED.replace("feed: activity", "feed: other").replace(
    "{path: raw, format: parquet}", "{table: raw.events}"
)


def append(bench: Bench, rows: list[dict[str, object]], **columns: pa.DataType) -> None:
    """Append rows to the Delta source, with the given types of columns."""
    kinds = {"user": pa.string(), "t": pa.int64(), "got": pa.int64(), "x": pa.int64(), **columns}
    schema = pa.schema([(name, kind) for name, kind in kinds.items() if name in rows[0]])
    table = pa.Table.from_pylist(rows, schema=schema)
    write_deltalake(str(bench.warehouse / TABLE), table, mode="append", schema_mode="merge")


def with_shuffle_reader(case: Case) -> Case:
    """Return the case with its log read by Spark."""

    def given(bench: Bench) -> None:
        case.given(bench)
        bench.write("conf/targets/local.yaml", scene.TARGET + SHUFFLE_READER)

    return replace(case, name=f"{case.name}, read by Spark", given=given)


def copied(template: Bench, root: Path) -> Bench:
    """Return a copy of a bench."""
    shutil.copytree(template.root, root)
    return Bench(root)
