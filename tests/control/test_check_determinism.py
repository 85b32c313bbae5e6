"""`rewindow check`: what it finds, what it accepts, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewindow.app.check_determinism import check_files
from rewindow.app.cli.entry import run_command
from tests.bad_input.nondeterminism import FINE as DETERMINISTIC
from tests.bad_input.nondeterminism import NEIGHBOURS, Planted

ROOT = Path(__file__).parent.parent.parent

CASES = {
    "import time\nx = time.time()": "time.time",
    "import time as clock\nx = clock.monotonic": "time.monotonic",
    "from time import time_ns\nx = time_ns()": "time.time_ns",
    "from datetime import datetime\nx = datetime.now()": "datetime.datetime.now",
    "import datetime as dt\nx = dt.datetime.utcnow()": "datetime.datetime.utcnow",
    "from datetime import date\nx = date.today()": "datetime.date.today",
    "import pendulum\nx = pendulum.now('UTC')": "pendulum.now",
    "import random\nx = random.random()": "random.random",
    "from random import choice as pick\nx = pick([1])": "random.choice",
    "import random\nx = random.Random()": "random.Random",
    "import numpy as np\nx = np.random.rand(3)": "numpy.random.rand",
    "import secrets\nx = secrets.token_hex()": "secrets.token_hex",
    "import uuid\nx = uuid.uuid4()": "uuid.uuid4",
    "from uuid import uuid1\nf = uuid1": "uuid.uuid1",
    "import os\nx = os.environ['HOME']": "os.environ",
    "from os import getenv\nx = getenv('HOME')": "os.getenv",
    "import os\nx = os.urandom(4)": "os.urandom",
    "import socket\nx = socket.gethostname()": "socket.gethostname",
    "x = id(object())": "id",
    "x = hash('a')": "hash",
    "f = lambda v: sorted(v, key=hash)": "hash",
    "for x in {1, 2}: pass": "iterates over a set ({1, 2})",
    "s = set()\ny = [x for x in s]": "iterates over a set (s)",
    "def f(s: set[str]): return ','.join(s)": "iterates over a set (s)",
    "s = frozenset([1])\ny = list(s | {2})": "iterates over a set (s | {2})",
    "a, b = {}, {}\nfor k in a.keys() & b.keys(): pass": "iterates over a set (a.keys() & b.keys())",
    "s = {1}\nx = s.pop()": "iterates over a set (s)",
    "s = {1}\nx = [*s]": "iterates over a set (s)",
    "s = {1}\nx = f'{s}'": "iterates over a set (s)",
    "s = {1}\nfor x in s.union([2]): pass": "iterates over a set (s.union([2]))",
    "from functools import lru_cache\n@lru_cache(3)\ndef f(x): return x": "functools.lru_cache",
    "import functools\n@functools.cache\ndef f(x): return x": "functools.cache",
}

STATE = {
    "n = 0\ndef f():\n    global n\n    n += 1": "global n",
    "seen = []\ndef f(row): seen.append(row)": "changes shared state (seen.append(row))",
    "counts = {}\ndef f(key): counts[key] = 1": "changes shared state (counts[key])",
    "counts = {}\ndef f(key): counts[key] += 1": "changes shared state (counts[key])",
    "counts = {}\ndef f(key): del counts[key]": "changes shared state (counts[key])",
    "counts = {}\nf = lambda key: counts.setdefault(key, 1)": "changes shared state (counts.setdefault(key, 1))",
    "known = {}\ndef f(key): known.get(key).append(1)": "changes shared state (known.get(key).append(1))",
    "known = {}\ndef f(key):\n    mine = known[key]\n    mine.append(1)": "changes shared state (mine.append(1))",
    "known = {}\ndef f():\n    for one in known.values(): one.clear()": "changes shared state (one.clear())",
    "from itertools import count\nn = count()\ndef f(): return next(n)": "changes shared state (next(n))",
    "import heapq\nq = []\ndef f(x): heapq.heappush(q, x)": "changes shared state (heapq.heappush(q, x))",
    "def f(): f.calls += 1": "changes shared state (f.calls)",
    "def f(): globals()['n'] = 1": "changes shared state (globals()['n'])",
    "class A:\n    n = 0\n    def f(self): A.n += 1": "changes shared state (A.n)",
    "class A:\n    n = 0\n    def f(self): type(self).n += 1": "changes shared state (type(self).n)",
    "class A:\n    n = 0\n    def f(self): self.__class__.n += 1": "changes shared state (self.__class__.n)",
    "class A:\n    n = 0\n    @classmethod\n    def f(cls): cls.n += 1": "changes shared state (cls.n)",
    "class A:\n    n = {}\n    def f(self, key): self.n[key] = 1": "changes shared state (self.n[key])",
    "class A:\n    n = []\n    def f(self): self.n.append(1)": "changes shared state (self.n.append(1))",
    "class A:\n    n = []\n    def f(self): setattr(A, 'n', 1)": "changes shared state (setattr(A, 'n', 1))",
    "class B:\n    n = []\nclass A(B):\n    def f(self): self.n.append(1)": "changes shared state (self.n.append(1))",
    "def f(x, seen=[]): return seen": "a default that can change ([])",
    "f = lambda x, *, seen={}: seen": "a default that can change ({})",
    "from itertools import count\ndef f(x, n=count()): return next(n)": "a default that can change (count())",
    "def build():\n    seen = []\n    b = StreamsBuilder()\n    b.map(lambda x: seen.append(x))": (
        "changes shared state (seen.append(x))"
    ),
    "def build():\n    n, b = 0, StreamsBuilder()\n    def f():\n        nonlocal n\n        n += 1": "nonlocal n",
    "from helpers import seen\ndef f(x): seen.append(x)": "changes shared state (seen.append(x))",
    "import helpers\ndef f(x): helpers.seen.append(x)": "changes shared state (helpers.seen.append(x))",
    "import helpers as h\ndef f(x): h.total = x": "changes shared state (h.total)",
    "from deep.er import seen as s\ndef f(x): s[x] = 1": "changes shared state (s[x])",
}

FINE = (
    "rates = {}\nrates['a'] = 1\nrates.update(b=2)\ndef f(x): return rates[x]",
    "def f(rows):\n    seen = []\n    for row in rows: seen.append(row)\n    return seen",
    "seen = []\ndef f(seen): seen.append(1)",
    "seen = []\ndef f():\n    seen = {}\n    seen['a'] = 1",
    "words = ['a']\ndef f(x):\n    mine = list(words)\n    mine.append(x)\n    return mine",
    "class A:\n    n = []\n    def __init__(self): self.n = []\n    def f(self): self.n.append(1)",
    "class A:\n    n: list = field(default_factory=list)\n    def f(self): self.n.append(1)",
    "class A:\n    n: dict\n    def f(self): self.n['a'] = 1",
    "def f(x):\n    n = 0\n    def g():\n        nonlocal n\n        n += x\n    g()\n    return n",
    "import numpy as np\ndef f(x): return np.append(x, 1), np.sort(x)",
    "import heapq\ndef f(x):\n    q = []\n    heapq.heappush(q, x)",
    "import helpers\ndef f(x): return helpers.add(x), helpers.seen[0]",
    "def f(x, names=('a', 'b'), limit=None): return x",
    "def build():\n    b = StreamsBuilder()\n    names = []\n    for n in range(3): names.append(n)\n    return b",
    "class A:\n    def f(self): self.seen = {}\n    def g(self, k): self.seen[k] = 1",
    "seen = {}\ndef f(x): seen[x] = 1  # rewindow: allow - a memo of a pure function",
    "import time\ntime.sleep(0)",
    "from datetime import datetime, timedelta\nx = datetime.fromtimestamp(0, None) + timedelta(1)",
    "import random\nx = random.Random(5).random() if False else random.Random(x=5)",
    "import uuid\nx = uuid.uuid5(uuid.NAMESPACE_URL, 'a')",
    "s = {1, 2}\nx = sorted(s), len(s), 1 in s, sum(s), max(s)",
    "def f(context): return context.random().random(), context.uuid()",
    "class Row:\n    id: int\ndef f(row): return row.id, row.hash",
    "def hash(x): return 1\ny = hash(2)",
    "def f(id): return id",
    "import time\nx = time.time()  # rewindow: allow - only logged",
    "for x in [1, 2]: pass",
    "x = {}\nfor y in x: pass",
)


def found(folder: Path, text: str) -> list[str]:
    (folder / "helpers.py").write_text("seen = []\ntotal = 0\ndef add(x): return x\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "er.py").write_text("from helpers import seen\n")
    (folder / "code.py").write_text(text)
    return [one.what for one in check_files(folder, [folder / "code.py"])]


@pytest.mark.parametrize("text", CASES)
def test_nondeterminism_is_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == [CASES[text]]


@pytest.mark.parametrize("text", STATE)
def test_state_outside_stores_is_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == [STATE[text]]


@pytest.mark.parametrize("planted", NEIGHBOURS, ids=lambda planted: planted.name)
def test_state_that_makes_two_runs_differ_from_one_is_found(tmp_path: Path, planted: Planted) -> None:
    assert found(tmp_path, planted.module)


@pytest.mark.parametrize("planted", DETERMINISTIC, ids=lambda planted: planted.name)
def test_a_deterministic_job_has_no_findings(tmp_path: Path, planted: Planted) -> None:
    assert found(tmp_path, planted.module) == []


@pytest.mark.parametrize("text", FINE)
def test_deterministic_code_passes(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


def project(folder: Path) -> Path:
    files = {
        "conf/jobs/late.yaml": "job: late\ntopology: jobs.late:build\nfeed: events\noutputs: {out: {table: out}}\n",
        "conf/feeds/events.yaml": "feed: events\npartitions: 1\nlogs:\n  events: {source: {table: raw}, key: k, "
        "timestamp: 'jobs.times:read'}\n",
        "conf/targets/local.yaml": "target: local\nwarehouse: warehouse\n",
        "jobs/__init__.py": "",
        "jobs/late.py": "import json\nfrom jobs import helpers\nfrom .deep import below\nraise SystemExit('never run')\n",
        "jobs/helpers.py": "import uuid\n\ndef name():\n    return uuid.uuid4()\n",
        "jobs/deep/__init__.py": "",
        "jobs/deep/below.py": "from random import random\nx = random()\n",
        "jobs/times.py": "import time\n\ndef read(record, partition_time):\n    return time.time()\n",
        "jobs/other.py": "x = hash(1)\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_job_is_checked_with_its_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "late", "--project", str(project(tmp_path)), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["file"], one["line"], one["what"]) for one in findings] == [
        ("jobs/deep/below.py", 2, "random.random"),
        ("jobs/helpers.py", 4, "uuid.uuid4"),
        ("jobs/times.py", 4, "time.time"),
    ]
    assert "context.uuid()" in findings[1]["instead"]


def test_a_file_is_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path)
    assert run_command(["check", str(root / "jobs/other.py"), "--project", str(root)]) == 1
    assert "jobs/other.py:1: hash: its value differs between processes" in capsys.readouterr().out
    (root / "jobs/other.py").write_text("x = (\n")
    assert run_command(["check", str(root / "jobs/other.py"), "--project", str(root)]) == 78
    assert run_command(["check", str(root / "jobs/gone.py"), "--project", str(root)]) == 78
    assert run_command(["check", "gone", "--project", str(root)]) == 78


@pytest.mark.parametrize("job", sorted(path.stem for path in (ROOT / "conf/jobs").glob("*.yaml")))
def test_our_own_jobs_are_clean(job: str) -> None:
    assert run_command(["check", job, "--project", str(ROOT)]) == 0
