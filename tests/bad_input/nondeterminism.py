"""Jobs that are not deterministic, which `verify` must find, and some that only look so."""

from __future__ import annotations

from typing import NamedTuple

SCORED = '.map_values(lambda row: score(row), name="scores")'
PROCESSED = '.process(Scoring, name="scores", value=str)'
COUNTED = '.group_by_key().aggregate(dict, add, store="sums").to_stream()'

MODULE = """\
{code}

def build_topology():
    from rewindow import StreamsBuilder

    builder = StreamsBuilder()
    builder.stream("events"){verbs}.to("totals")
    return builder.build()
"""


class Planted(NamedTuple):
    """The code of a job."""

    name: str
    code: str
    verbs: str = SCORED

    @property
    def module(self) -> str:
        """The text of the job's module."""
        return MODULE.format(code=self.code, verbs=self.verbs)


def _score(name: str, value: str, *before: str) -> Planted:
    return Planted(name, "\n".join([*before, "", "def score(row):", f"    return {value}"]))


def _processor(name: str, body: str, *before: str, members: str = "") -> Planted:
    lines = [*before, "from rewindow import Processor", "class Scoring(Processor):", *filter(None, [members])]
    lines += ["    def process(self, record):", *(f"        {line}" for line in body.split("\n"))]
    return Planted(name, "\n".join(lines), PROCESSED)


_WORDS = '("ash", "birch", "cedar", "elm", "fir", "larch", "oak", "pine", "yew")'
_THING = "class Thing:\n    def __init__(self, name): self.name = name"

RANDOMNESS = [
    _score("random.random", "random.random()", "import random"),
    _score(
        "numpy's generator without a seed", "float(rng.random())", "import numpy", "rng = numpy.random.default_rng()"
    ),
    _score("os.urandom", "os.urandom(8).hex()", "import os"),
    Planted("a random filter", "import random", ".filter(lambda key, row: random.random() < 0.5)"),
    Planted("a random key", "import random", ".select_key(lambda key, row: str(random.random()))"),
    Planted(
        "a random key of a repartition",
        "import random",
        ".select_key(lambda key, row: str(random.random())).group_by_key().count(store='sums').to_stream()",
    ),
    Planted(
        "a random aggregate",
        "import random\ndef add(key, row, total):\n    return {**total, 'seen': random.random()}",
        COUNTED,
    ),
]
CLOCKS = [
    _score("time.time", "time.time()", "import time"),
    _score("time.process_time", "time.process_time_ns()", "import time"),
    _processor(
        "a clock in a punctuation",
        "self.context.schedule('1m', PunctuationType.STREAM_TIME, self.tick, name=str(record.value.x % 2))",
        "import time",
        "from rewindow import PunctuationType, Record",
        members="    def tick(self, now):\n        self.context.forward(Record('ann', str(time.time_ns()), now))",
    ),
]
ORDERS = [
    _score("the order of a set", '",".join(words)', f"words = set({_WORDS})"),
    _score("hash of a text", "hash(str(row.x))"),
    _score("id", "id(row)"),
    _score("the repr of an object", "repr(Thing('a'))", _THING),
    _score(
        "a set of objects",
        "str([thing.name for thing in things])",
        _THING,
        f"things = {{Thing(name + str(n)) for name in {_WORDS} for n in range(30)}}",
    ),
    _score(
        "floats summed in the order of a set",
        "sum(float(text) for text in texts)",
        'texts = {"0.1", "0.2", "0.3", "0.7", "1e15", "-1e15", "1e-9", "3.3", "5e14"}',
    ),
]
MACHINE = [
    _score("the process", "os.getpid()", "import os"),
    _score("the environment", 'os.environ["PYTHONHASHSEED"]', "import os"),
    _score(
        "a file that changes",
        "open(path).read()",
        "from pathlib import Path",
        'path = Path(__file__).parent / "rates.txt"',
    ),
    _score(
        "how many files there are", 'len(list(Path(__file__).parent.rglob("*.parquet")))', "from pathlib import Path"
    ),
]
NEIGHBOURS = [
    _score("a counter of the module", "next(numbers)", "from itertools import count", "numbers = count()"),
    _score("a list of the module", "seen.append(row.x) or len(seen)", "seen = []"),
    Planted("a default that is kept", "def score(row, seen=[]):\n    seen.append(row.x)\n    return sum(seen)"),
    _score("a cache that keeps the first", "known.setdefault(row.x % 5, row.x)", "known = {}"),
    _score(
        "an lru_cache that forgets",
        "int(rank(row.x % 7))",
        "from functools import lru_cache",
        "calls = []",
        "@lru_cache(3)",
        "def rank(x):",
        "    calls.append(x)",
        "    return len(calls)",
    ),
    _score(
        "a mean over the process",
        "mean(row.x)",
        "sums = [0, 0]",
        "def mean(x):",
        "    sums[0] += x",
        "    sums[1] += 1",
        "    return sums[0] / sums[1]",
    ),
    _processor(
        "a field of the class",
        "Scoring.seen += 1\nself.context.forward(record._replace(value=str(Scoring.seen)))",
        members="    seen = 0",
    ),
    _processor(
        "a batch over the process",
        "waiting.append(record.value.x)\nif len(waiting) == 5:\n"
        "    self.context.forward(record._replace(value=str(waiting)))\n    waiting.clear()",
        "waiting = []",
    ),
    _processor(
        "the partition that came first",
        "first.append(self.context.partition)\nself.context.forward(record._replace(value=str(first[0])))",
        "first = []",
    ),
]
FOUND = [*RANDOMNESS, *CLOCKS, *ORDERS, *MACHINE, *NEIGHBOURS]
"""Cases that `verify` finds: one for each way in which a replay is another process, and each place where it shows."""

ON_SPARK = ("random.random", "the order of a set", "a counter of the module", "a sorted set")
"""Cases that also run on Spark."""

FINE = [
    _score("a sorted set", '",".join(sorted(words))', f"words = set({_WORDS})"),
    _score("a sum of a set of numbers", "sum({row.x, 1, 2, 3})"),
    _score("a seeded generator", "Random(row.x).random()", "from random import Random"),
    _score("a digest of the record", "sha256(str(row.x).encode()).hexdigest()", "from hashlib import sha256"),
    _score("uuid5", "str(uuid.uuid5(uuid.NAMESPACE_URL, str(row.x)))", "import uuid"),
    _score("a table of the module", "rates[row.x % 3]", "rates = {0: 1, 1: 2, 2: 3}"),
    _processor(
        "rewindow's own generator", "self.context.forward(record._replace(value=str(self.context.random().random())))"
    ),
    _processor("rewindow's own name", "self.context.forward(record._replace(value=str(self.context.uuid())))"),
    _processor("rewindow's own clock", "self.context.forward(record._replace(value=str(self.context.stream_time_ms)))"),
    Planted(
        "floats added in order",
        "def add(key, row, total):\n    return {'sum': total.get('sum', 0.0) + row.x / 3}",
        COUNTED,
    ),
]
"""Deterministic cases, which `verify` accepts."""
