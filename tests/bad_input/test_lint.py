"""The lint finds clocks, randomness and state outside stores with their kind and line, and nothing in correct jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewindow.app.cli.entry import run_command
from rewindow.app.lint import CLOCK, RANDOM, STATE, lint
from tests.bad_input.nondeterminism import FINE, NEIGHBOURS, Planted
from tests.docs.blocks import ROOT, blocks_of, pages


def found(folder: Path, text: str) -> list[tuple[str, str]]:
    """Return the code and the expression of each finding in a module."""
    (folder / "helpers.py").write_text("seen = []\ntotal = 0\ndef add(x): return x\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "er.py").write_text("from helpers import seen\n")
    (folder / "code.py").write_text(text)
    return [(finding.code, finding.what) for finding in lint(folder, [folder / "code.py"])]


NAMES = {
    "import time as clock\nx = clock.monotonic": (CLOCK, "time.monotonic"),
    "from datetime import datetime\nx = datetime.now()": (CLOCK, "datetime.datetime.now"),
    "from datetime import date\nx = date.today()": (CLOCK, "datetime.date.today"),
    "from uuid import uuid4\nx = uuid4()": (RANDOM, "uuid.uuid4"),
    "import datetime as dt\nx = dt.datetime.utcnow()": (CLOCK, "datetime.datetime.utcnow"),
    "import pendulum\nx = pendulum.now('UTC')": (CLOCK, "pendulum.now"),
    "from random import choice as pick\nx = pick([1])": (RANDOM, "random.choice"),
    "import random\nx = random.Random()": (RANDOM, "random.Random"),
    "import numpy as np\nx = np.random.rand(3)": (RANDOM, "numpy.random.rand"),
    "import os\nx = os.urandom(4)": (RANDOM, "os.urandom"),
    "from functools import lru_cache\n@lru_cache(3)\ndef f(x): return x": (STATE, "functools.lru_cache"),
}
CHANGES = {
    "n = 0\ndef f():\n    global n\n    n += 1": "global n",
    "counts = {}\ndef f(key): counts[key] += 1": "changes shared state (counts[key])",
    "counts = {}\ndef f(key): del counts[key]": "changes shared state (counts[key])",
    "counts = {}\nf = lambda key: counts.setdefault(key, 1)": "changes shared state (counts.setdefault(key, 1))",
    "import heapq\nq = []\ndef f(x): heapq.heappush(q, x)": "changes shared state (heapq.heappush(q, x))",
    "def f(): f.calls += 1": "changes shared state (f.calls)",
    "class A:\n    n = []\n    def f(self): A.n.append(1)": "changes shared state (A.n.append(1))",
    "class A:\n    n = []\n    def f(self): setattr(A, 'n', 1)": "changes shared state (setattr(A, 'n', 1))",
    "def f(x, seen=[]): return seen": "a default that can change ([])",
    "def build():\n    seen = []\n    b = StreamsBuilder()\n    b.map(lambda x: seen.append(x))": (
        "changes shared state (seen.append(x))"
    ),
    "def build():\n    n, b = 0, StreamsBuilder()\n    def f():\n        nonlocal n\n        n += 1": "nonlocal n",
    "from helpers import seen\ndef f(x): seen.append(x)": "changes shared state (seen.append(x))",
    "class A(Processor):\n    def init(self, c): self.n = 0\n    def process(self, r): self.n += r": (
        "changes shared state (self.n)"
    ),
    "import helpers as h\ndef f(x): h.total = x": "changes shared state (h.total)",
    "from deep.er import seen as s\ndef f(x): s[x] = 1": "changes shared state (s[x])",
}
CORRECT = (
    "rates = {}\nrates['a'] = 1\nrates.update(b=2)\ndef f(x): return rates[x]",
    "def f(rows):\n    seen = []\n    for row in rows: seen.append(row)\n    return seen",
    "seen = []\ndef f():\n    seen = {}\n    seen['a'] = 1",
    "def f(x):\n    n = 0\n    def g():\n        nonlocal n\n        n += x\n    g()\n    return n",
    "import numpy as np\ndef f(x): return np.append(x, 1), np.sort(x)",
    "import helpers\ndef f(x): return helpers.add(x), helpers.seen[0]",
    "def build():\n    b = StreamsBuilder()\n    names = []\n    for n in range(3): names.append(n)\n    return b",
    "class A(Processor):\n    def process(self, r):\n        self.seen = {}\n        self.seen[r] = 1",
    "class A(Processor):\n    def init(self, c): self.n = []\n    def close(self): self.n.clear()",
    "class A(Processor):\n    def init(self, c): self.s = c.store('s')\n    def process(self, r): self.s.remove(r)",
    "seen = {}\ndef f(x): seen[x] = 1  # rewindow: allow - a memo of a pure function",
    "import random\nx = random.Random(5).random() if False else random.Random(x=5)",
    "from datetime import datetime, timedelta\nx = datetime.fromtimestamp(0, None) + timedelta(1)",
    "import uuid\nx = uuid.uuid5(uuid.NAMESPACE_URL, 'a')",
    "def f(context, random): return context.random().random(), random.x",
)


@pytest.mark.parametrize("text", NAMES)
def test_a_name_is_found_however_it_is_imported(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == [NAMES[text]]


@pytest.mark.parametrize("text", CHANGES)
def test_a_change_of_state_outside_stores_is_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == [(STATE, CHANGES[text])]


@pytest.mark.parametrize("planted", NEIGHBOURS, ids=lambda planted: planted.name)
def test_state_that_makes_two_runs_differ_from_one_is_found(tmp_path: Path, planted: Planted) -> None:
    assert {code for code, _ in found(tmp_path, planted.module)} == {STATE}


@pytest.mark.parametrize("text", [*CORRECT, *(planted.module for planted in FINE)])
def test_deterministic_code_has_no_findings(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize("page", [page for page in pages() if any(b.language == "python" for b in blocks_of(page))])
def test_the_code_on_a_page_has_no_findings(tmp_path: Path, page: str) -> None:
    text = "\n".join(block.text for block in blocks_of(page) if block.language == "python")
    assert found(tmp_path, text) == []


@pytest.mark.parametrize("job", sorted(path.stem for path in (ROOT / "conf/jobs").glob("*.yaml")))
def test_our_own_jobs_have_no_findings(job: str) -> None:
    assert run_command(["check", job, "--project", str(ROOT)]) == 0


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
        "jobs/other.py": "import secrets\nx = secrets.token_hex()\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_job_is_checked_with_its_imports_and_timestamps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "late", "--project", str(project(tmp_path)), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [tuple(finding[key] for key in ("file", "line", "code", "what")) for finding in findings] == [
        ("jobs/deep/below.py", 2, RANDOM, "random.random"),
        ("jobs/helpers.py", 4, RANDOM, "uuid.uuid4"),
        ("jobs/times.py", 4, CLOCK, "time.time"),
    ]
    assert set(findings[0]) == {"file", "line", "code", "what", "instead"}


def test_a_file_is_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path)
    other = root / "jobs/other.py"
    assert run_command(["check", str(other), "--project", str(root)]) == 1
    assert "jobs/other.py:2: secrets.token_hex: " in capsys.readouterr().out
    other.write_text("x = (\n")
    assert run_command(["check", str(other), "--project", str(root)]) == 78
    assert run_command(["check", str(root / "jobs/gone.py"), "--project", str(root)]) == 78
    assert run_command(["check", "gone", "--project", str(root)]) == 78
