"""User code that fails or gives invalid values."""

from __future__ import annotations

from tests.bad_input.cases import Case
from tests.bad_input.scene import MODULE, SCORE
from tests.refusals import containing


def _score(name: str, code: str, slug: str, /, **facts: object) -> Case:
    return Case(f"score() {name}", "run counts", slug, facts, lambda bench: bench.code(code))


def _module(name: str, text: str, slug: str, /, **facts: object) -> Case:
    return Case(name, "run counts", slug, facts, lambda bench: bench.write("bench_job.py", text))


CASES = [
    _score("divides by zero", "def score(row):\n    return 1 // (row.x - row.x)\n", "node-failed", node="scores"),
    _score("reads an unknown field", "def score(row):\n    return row.y\n", "node-failed", error=containing("'y'")),
    _score("recurses forever", "def score(row):\n    return score(row)\n", "node-failed"),
    _score("raises with braces", "def score(row):\n    raise ValueError('{a}\\nb %s')\n", "node-failed"),
    _score("has no memory", "def score(row):\n    raise MemoryError\n", "node-out-of-memory", node="scores"),
    _score(
        "fails without words",
        "class Mine(Exception):\n    def __str__(self):\n        raise KeyError\ndef score(row):\n    raise Mine\n",
        "node-failed",
        error=containing("its message failed with KeyError"),
    ),
    _score(
        "raises a very long message",
        "def score(row):\n    raise ValueError('y' * 10**7)\n",
        "node-failed",
        error=containing("yyy ..."),
    ),
    _score("leaves the process", "def score(row):\n    raise SystemExit(3)\n", "job-code-failed"),
    _module(
        "another window than before",
        MODULE.format(score=SCORE).replace('"30m"', '"20m"'),
        "job-changed-since-checkpoint",
        run="main/2",
    ),
]
