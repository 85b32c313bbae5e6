"""`make lost-worker`: a replay of half an hour loses its worker after twenty minutes. Writes `RESULTS.md` beside this file.

Five DAGs of a real Airflow, with the settings that users have, replay the same orders at the same time, each in a warehouse
of its own. A function that sleeps makes the replay long and cheap, and notes each record that it is called for. So the notes
say how many records were replayed twice.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from rewindow.tables.delta.table_rows import content_hash
from tests.airflow.home import commands, environment, migrate, said
from tests.airflow.live import Live
from tests.airflow.shop import FEED, JOB, TOPOLOGY
from tests.bench.sections import write_section

PAGE: Final = Path(__file__).with_name("RESULTS.md")
TABLE: Final = "warehouse/shop/daily_orders"
JOB_NAME: Final = "daily_orders"
DAYS: Final = 6
END: Final = f"2026-01-{DAYS + 1:02}T00:00:00Z"
PARTITIONS: Final = 2
AN_HOUR: Final = 3600
LEAST_MINUTES: Final = 30
"""Shorter replays are only printed."""
CUSTOMERS: Final = "daebfc"
"""Every other one is in partition 0."""
WAYS: Final = {
    "task": "the process of the task is killed (SIGKILL)",
    "worker": "the worker, with the process of the task, is killed (SIGKILL)",
    "failed": "the task is marked as failed, and cleared once its processes have ended",
    "parts": "the worker is killed, and the job's file has `landings_per_run: 1`, a day in each run",
    "daily": "the worker is killed, in one of the DAG runs that `catchup` makes, one for each day",
}
"""What happens to each DAG."""
SLOWLY: Final = """\
import os
import time


def slowly(key, value) -> bool:
    note = os.open({notes!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(note, f"{{value.order_id}}\\n".encode())
    os.close(note)
    time.sleep({seconds})
    return True


"""
DAGS: Final = """\
from datetime import UTC, datetime

from rewindow.airflow.dags import make_dags

dates = {{"start_date": datetime(2026, 1, 1, tzinfo=UTC), "end_date": datetime(2026, 1, {days}, tzinfo=UTC)}}
for way, root in {roots!r}.items():
    globals().update(
        make_dags(root, prefix=f"{{way}}_", pool=f"rewindow_{{way}}", reports="none", catchup=way == "daily", **dates)
    )
"""


class Way:
    """One DAG, its project, and what was seen of it."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.root = root
        self.dag = f"{name}_{JOB_NAME}"
        self.run_id = ""
        self.begun = 0.0
        self.lost = 0.0
        self.seen_when_lost = 0
        self.ends_s = 0.0
        self.lost_try = 0
        self.tree: list[psutil.Process] = []

    def notes(self) -> list[str]:
        """The records that the function was called for, in order."""
        file = self.root / "notes"
        return file.read_text().split() if file.exists() else []

    def running(self, live: Live) -> dict[str, Any] | None:
        """Return the task `run` that is executed now, of any run of the DAG."""
        for run in live.get(f"/dags/{self.dag}/dagRuns", limit=100)["dag_runs"]:
            task = live.tasks(self.dag, run["dag_run_id"])["run"]
            if task["state"] == "running":
                self.run_id = run["dag_run_id"]
                return task
        return None

    def replays(self, live: Live) -> bool:
        """Return whether a command replays records now: the DAG that catches up also lands between its runs."""
        return self.running(live) is not None and len(commands(self.root, "run")) == 1

    def lose(self, live: Live) -> None:
        """Do what the way says, and wait until nothing of the command is left."""
        task = self.running(live)
        assert task is not None, self.name
        (command,) = commands(self.root, "run")
        self.tree = tree_of(command)
        self.lost_try = task["try_number"]
        self.seen_when_lost, self.lost = len(set(self.notes())), time.time()
        if self.name == "failed":
            live.patch(f"{self._task}", {"new_state": "failed"})
        else:
            executes = psutil.Process(self.tree[0].ppid())
            for process in (executes,) if self.name == "task" else (psutil.Process(executes.ppid()), executes):
                process.kill()
        live.until(lambda: not any(map(lives, self.tree)), 120, f"the end of {self.name}'s processes")
        self.ends_s = time.time() - self.lost

    def state(self, live: Live) -> str:
        """Return the state of the task that was lost."""
        return str(live.tasks(self.dag, self.run_id)["run"]["state"])

    def clear(self, live: Live) -> None:
        """Clear the task, as a person does who wants it to run again."""
        body = {"dag_run_id": self.run_id, "task_ids": ["run"], "only_failed": False, "dry_run": False}
        live.post(f"/dags/{self.dag}/clearTaskInstances", body)

    def has_ended(self, live: Live) -> bool:
        """Return whether all runs of the DAG have ended."""
        runs = live.get(f"/dags/{self.dag}/dagRuns", limit=100)["dag_runs"]
        expected = DAYS if self.name == "daily" else 1
        return len(runs) == expected and all(run["state"] in ("success", "failed") for run in runs)

    def figures(self, live: Live, expected: str) -> dict[str, Any]:
        """Return what was measured, once all runs have ended."""
        tries = live.get(f"{self._task}/tries")["task_instances"]
        begun, ended = ({one["try_number"]: at(one[edge]) for one in tries} for edge in ("start_date", "end_date"))
        last, notes = max(begun), self.notes()
        return {
            "states": sorted({run["state"] for run in live.get(f"/dags/{self.dag}/dagRuns", limit=100)["dag_runs"]}),
            "minutes_before": (self.lost - self.begun) / 60,
            "records": len(set(notes)),
            "seen_when_lost": self.seen_when_lost,
            "replayed_twice": len(notes) - len(set(notes)),
            "processes": len(self.tree),
            "ends_s": self.ends_s,
            "notices_s": ended[self.lost_try] - self.lost,
            "waits_s": begun[self.lost_try + 1] - ended[self.lost_try],
            "tries": len(tries),
            "last_try_minutes": (ended[last] - begun[last]) / 60,
            "runs": len(rewindow(self.root, "show", JOB_NAME)["runs"]),
            "is_right": content_hash(str(self.root / TABLE)) == expected,
        }

    @property
    def _task(self) -> str:
        return f"/dags/{self.dag}/dagRuns/{self.run_id}/taskInstances/run"


def main(minutes: float, lost_after: float, *, writes: bool) -> int:
    """Play all ways, print and write what was measured, and return 1 if anything is not as it should be."""
    with tempfile.TemporaryDirectory(prefix="rewindow-lost-worker-") as folder:
        base = Path(folder)
        whole = make_project(base / "unbroken", minutes, slow=False, spark=False)
        for command in (["land", "orders", "--until", END], ["run", JOB_NAME]):
            rewindow(whole, *command)
        expected = content_hash(str(whole / TABLE))
        # The DAG that catches up starts twelve commands, so it does without a JVM.
        ways = [
            Way(name, make_project(base / name, minutes, spark=name != "daily", parts=name == "parts")) for name in WAYS
        ]
        (base / "dags").mkdir()
        (base / "dags/ways.py").write_text(DAGS.format(days=DAYS, roots={way.name: str(way.root) for way in ways}))
        env = environment(base, base / "dags")
        migrate(env)
        live = Live(env)
        # As users have it: Airflow's own time until it misses a worker, and its own delays.
        for name in (*(one for one in live.env if "HEARTBEAT" in one), "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY"):
            del live.env[name]
        with live:
            start(live, ways)
            found, bystanders = played(live, ways, lost_after, expected)
    text = page(found, minutes, bystanders)
    print(text)
    if writes:
        write_section(PAGE, "lost-worker", "make lost-worker", text)
    is_well = all(one["states"] == ["success"] and one["is_right"] for one in found.values())
    return int(not (is_well and bystanders))


def start(live: Live, ways: list[Way]) -> None:
    """Make the pools and start the DAGs."""
    live.until(lambda: live.get("/dags")["total_entries"] == 2 * len(ways), AN_HOUR, "the DAGs")
    for way in ways:
        live.post("/pools", {"name": f"rewindow_{way.name}", "slots": 1})
        live.patch(f"/dags/{way.dag}", {"is_paused": False})
        if way.name != "daily":
            live.post(f"/dags/{way.dag}/dagRuns", {"logical_date": None, "conf": {"through": END}})


def played(live: Live, ways: list[Way], lost_after: float, expected: str) -> tuple[dict[str, dict[str, Any]], int]:
    """Lose all workers and wait for the end. Return the figures of each way, and how many processes `on_kill` spared."""
    for way in ways:
        live.until(way.notes, AN_HOUR, f"{way.name}'s first record")
        way.begun = time.time()
        print(f"{way.name} replays", flush=True)
    time.sleep(max(0.0, ways[-1].begun + 60 * lost_after - time.time()))
    # The others' commands are beside the one that `on_kill` ends.
    others = [pid for way in ways if way.name in ("task", "worker", "parts") for pid in commands(way.root, "run")]
    beside = [process for pid in others for process in tree_of(pid)]
    by_name = {way.name: way for way in ways}
    for name in ("failed", "task", "worker", "parts", "daily"):
        way = by_name[name]
        if name == "daily":
            live.until(partial(way.replays, live), AN_HOUR, "the next day's run")
        way.lose(live)
        print(f"{name} lost after {(way.lost - way.begun) / 60:.1f} minutes; {way.state(live)}", flush=True)
        if name == "failed":
            spared = sum(map(lives, beside))
            assert spared == len(beside), f"on_kill ended {len(beside) - spared} processes of other tasks"
            assert way.state(live) == "failed"
            way.clear(live)
    for way in ways:
        live.until(partial(way.has_ended, live), 2 * AN_HOUR, f"the end of {way.name}")
    return {way.name: way.figures(live, expected) for way in ways}, len(beside)


def page(found: Mapping[str, Mapping[str, Any]], minutes: float, bystanders: int) -> str:
    """Return the figures as a section of the page."""
    rows: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("lost after the replay had run for", lambda one: f"{one['minutes_before']:.1f} min"),
        ("records, of which it had replayed", lambda one: f"{one['records']:,}, {one['seen_when_lost']:,}"),
        ("processes of the command, gone after", lambda one: f"{one['processes']}, {one['ends_s']:.1f} s"),
        ("Airflow noticed after", lambda one: f"{one['notices_s']:.0f} s"),
        ("the next try started after another", lambda one: f"{one['waits_s']:.0f} s"),
        ("tries of the task, minutes of the last", lambda one: f"{one['tries']}, {one['last_try_minutes']:.1f} min"),
        ("records replayed twice", lambda one: f"{one['replayed_twice']:,}"),
        ("runs in the ledger", lambda one: str(one["runs"])),
        ("rows equal to an unbroken run's", lambda one: "yes" if one["is_right"] else "**NO**"),
    ]
    lines = [f"### A replay of {minutes:g} minutes loses its worker", ""]
    lines += [f"* `{name}`: {what}." for name, what in WAYS.items()]
    lines += ["", f"| | {' | '.join(f'`{name}`' for name in found)} |", f"| --- |{' --- |' * len(found)}"]
    lines += [f"| {title} | {' | '.join(value(figures) for figures in found.values())} |" for title, value in rows]
    lines += ["", f"When `on_kill` ended the command of `failed`, all {bystanders} processes of the others went on."]
    return "\n".join(lines)


def make_project(root: Path, minutes: float, *, slow: bool = True, spark: bool = True, parts: bool = False) -> Path:
    """Write the project and return its folder. Spark replays both partitions at once, a command alone one after the other."""
    count = round(minutes * 60 * 4)
    seconds = (0.5 if spark else 0.25) if slow else 0
    topology = TOPOLOGY.replace('builder.stream("orders")', 'builder.stream("orders")\n        .filter(slowly)')
    imports, _, rest = topology.partition("\n\n\n")
    files = {
        "conf/feeds/orders.yaml": FEED.replace("partitions: 2", f"partitions: {PARTITIONS}"),
        f"conf/jobs/{JOB_NAME}.yaml": JOB + ("landings_per_run: 1\n" if parts else ""),
        "conf/targets/local.yaml": "target: local\nwarehouse: warehouse\nexecution: record\n"
        + ("inline: 0\n" if spark else ""),
        f"jobs/{JOB_NAME}.py": f"{SLOWLY.format(notes=str(root / 'notes'), seconds=seconds)}{imports}\n\n\n{rest}",
        "data/orders.csv": orders(count),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def orders(count: int) -> str:
    """Return as many orders for each of the first days of January 2026, of customers in both partitions alike."""
    a_day = count // DAYS
    lines = ["order_id,customer,amount,ordered_at,received_at"]
    for number in range(DAYS * a_day):
        second = 86_390 * (number % a_day) // a_day
        ordered_at = f"2026-01-{1 + number // a_day:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        lines.append(f"{number},{CUSTOMERS[number % len(CUSTOMERS)]},{number % 100}.5,{ordered_at},{ordered_at}")
    return "\n".join(lines) + "\n"


def rewindow(root: Path, *arguments: str) -> Any:
    """Run a command on a project and return its JSON."""
    line = [sys.executable, "-P", "-m", "rewindow", *arguments, "--project", str(root), "--json"]
    return json.loads(said(environment(root, root), *line, cwd=root))


def tree_of(command: int) -> list[psutil.Process]:
    """Return a command's supervisor and all processes below it that have not ended."""
    supervisor = psutil.Process(psutil.Process(command).ppid())
    return [supervisor, *filter(lives, supervisor.children(recursive=True))]


def lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def at(time_text: str) -> float:
    """Return a time of the API in seconds."""
    return datetime.fromisoformat(time_text).timestamp()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the replay takes")
    parser.add_argument("--lost-after", type=float, default=20.0, help="minutes of replay before the worker is lost")
    given = parser.parse_args()
    sys.exit(main(given.minutes, given.lost_after, writes=given.minutes >= LEAST_MINUTES))
