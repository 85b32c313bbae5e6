"""User code that fails, returns invalid values, or has changed."""

from __future__ import annotations

from tests.bad_input.cases import Case
from tests.bad_input.scene import MODULE, SCORE

_FIX = "Nothing was committed: fix the code and run again, with `--accept-changes` if earlier runs had it"


def _score(name: str, code: str, *says: str, exit_code: int = 65) -> Case:
    return Case(f"score() {name}", "run counts", exit_code, says, lambda bench: bench.code(code), landed=True)


def _module(name: str, text: str, code: int, *says: str) -> Case:
    given = lambda bench: bench.write("bench_job.py", text)  # noqa: E731 - a case is data
    return Case(name, "run counts", code, says, given, landed=True, goes_on=False)


def _built(name: str, old: str, new: str, code: int, *says: str) -> Case:
    text = MODULE.format(score=SCORE)
    assert text.count(old) == 1, old
    return _module(name, text.replace(old, new), code, *says)


_SUMMED = '.count(store="sums")'
CASES = [
    _score(
        "divides by zero",
        "def score(row):\n    return 1 // (row.x - row.x)\n",
        "ZeroDivisionError",
        "bench_job.py:4",
        _FIX,
    ),
    _score("reads an unknown field", "def score(row):\n    return row.y\n", "has no attribute 'y'", _FIX),
    _score(
        "raises its own exception",
        "class Mine(Exception): pass\ndef score(row):\n    raise Mine('no')\n",
        "Mine: no",
        _FIX,
    ),
    _score("recurses forever", "def score(row):\n    return score(row)\n", "RecursionError", _FIX),
    _score("asserts", "def score(row):\n    assert row.x < 0, 'negative'\n", "AssertionError: negative", _FIX),
    _score("stops an iteration", "def score(row):\n    return next(iter(()))\n", "StopIteration", _FIX),
    _score("raises with braces and lines", "def score(row):\n    raise ValueError('{a}\\nb %s')\n", "ValueError", _FIX),
    _score(
        "has no memory",
        "def score(row):\n    raise MemoryError\n",
        "node 'scores' ran out of memory at events offset",
        "more memory or fewer cores",
        exit_code=71,
    ),
    _score(
        "fails without words",
        "class Mine(Exception):\n    def __str__(self):\n        raise KeyError\ndef score(row):\n    raise Mine\n",
        "Mine: (its message failed with KeyError)",
        _FIX,
    ),
    _score(
        "raises a very long message",
        "def score(row):\n    raise ValueError('y' * 10**7)\n",
        "ValueError: yyy",
        "yyy ...",
        _FIX,
    ),
    _score("changes the record", "def score(row):\n    row.x = 0\n    return 0\n", "can't set attribute", _FIX),
    _score("leaves the process", "def score(row):\n    raise SystemExit(3)\n", "SystemExit"),
    _score(
        "cancels itself",
        "import asyncio\ndef score(row):\n    raise asyncio.CancelledError\n",
        "CancelledError",
        "score",
    ),
    _module("an unknown module", "import nowhere_to_be_found\n", 78, "cannot import", "nowhere_to_be_found"),
    _module("a module that is no Python", "def build_topology(:\n", 78, "bench_job.py:1", "Fix that line"),
    _module("a module that fails", "1 / 0\n", 78, "ZeroDivisionError", "bench_job.py:1"),
    _module("a module that leaves", "import sys\nsys.exit(0)\n", 78, "SystemExit"),
    _module("a module without the function", "x = 1\n", 78, "has no function 'build_topology'", "fix `topology:`"),
    _module("a function that builds nothing", "def build_topology(): pass\n", 78, "return builder.build()"),
    _module("a function that wants arguments", "def build_topology(x): pass\n", 78, "TypeError", "bench_job"),
    _module("a function that fails", "def build_topology():\n    return {}['x']\n", 78, "KeyError", "bench_job.py:2"),
    _module("a class that is no function", "build_topology = 5\n", 78, "has no function 'build_topology'"),
    _built("a grace that is negative", 'grace="5m"', 'grace="-5m"', 78, "must be 0 or more", "bench_job.py:13"),
    _built("an input that is not in the feed", '"events"', '"evnts"', 78, "evnts", "events"),
    _built("an output that is not in the job", '.to("totals")', '.to("sums")', 78, "'sums'", "add it to `outputs:`"),
    _built("another window than before", '"30m"', '"20m"', 76, "--branch"),
    _built("another grace than before", 'grace="5m"', 'grace="6m"', 76, "--branch"),
    _built("another store than before", 'store="sums"', 'store="totals"', 76, "--branch"),
    _built("another suppress than before", 'name="closed"', 'name="shut"', 76, "closed"),
    _built("a duration that is none", '"30m"', '"half an hour"', 78, "500ms, 10s"),
    _built("a negative grace", 'grace="5m"', 'grace="-5m"', 78, "grace"),
    _built("a store's name with a path", 'store="sums"', 'store="../sums"', 78, "store"),
    _built("a value instead of a function", "lambda row: score(row)", '"score"', 78, "map_values"),
    _built("an aggregate of an unknown field", _SUMMED, '.aggregate(Sum("y"), store="sums")', 78, "y"),
]
