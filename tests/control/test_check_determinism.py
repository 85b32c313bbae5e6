"""`rewindow check`: what it finds, what it accepts, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewindow.app.check_determinism import check_files
from rewindow.app.cli.app import run_command

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
}

FINE = (
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
    (folder / "code.py").write_text(text)
    return [one.what for one in check_files(folder, [folder / "code.py"])]


@pytest.mark.parametrize("text", CASES)
def test_nondeterminism_is_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == [CASES[text]]


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
