"""`run` or `verify` of planted jobs in a process of its own, as a day lies between them: `python -m ... run FOLDER`.

Its tasks are grouped and its modules fresh for each group, as in Spark's workers. Prints what each command came to.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from rewindow.core.staging import TaskReport
from rewindow.core.work import StageWork
from rewindow.spark.engine import LocalEngine, groups_of
from rewindow.spark.execute import run_task
from tests.bad_input import dice, scene


class GroupedEngine(LocalEngine):
    """One group of tasks after the other, each as in a new worker."""

    def __init__(self, *_args: Any, slots: int, **_options: Any) -> None:
        self._slots = slots

    def run_stage(self, work: StageWork) -> list[TaskReport]:
        """Run one sub-topology; return the reports by partition."""
        reports = []
        for group in groups_of(work.tasks, self._slots):
            sys.modules.pop("bench_job", None)
            reports += [run_task(work, task) for task in group]
        return sorted(reports, key=lambda report: report.partition)


def main(command: str, folder: Path) -> None:
    """Do the command in the project of each planted job."""
    found = {}
    with scene.without_spark(), pytest.MonkeyPatch.context() as patched:
        patched.setattr("rewindow.spark.engine.SparkEngine", GroupedEngine)
        template = scene.Bench(folder / "template")
        if command == "run":
            land(template)
        for number, planted in enumerate([*dice.FOUND, *dice.FINE]):
            root = folder / str(number)
            if command == "run":
                shutil.copytree(template.root, root)
            bench = scene.Bench(root)
            bench.write("bench_job.py", planted.module)
            bench.write("rates.txt", command)
            answer = bench.run(command, "counts", *(["--json"] if command == "verify" else []))
            found[planted.name] = [answer.code, answer.out, answer.err]
    sys.stdout.write(json.dumps(found))


def land(bench: scene.Bench) -> None:
    """Land a few records over four partitions."""
    bench.write("conf/feeds/activity.yaml", scene.FEED.replace("partitions: 2", "partitions: 4"))
    bench.write("conf/jobs/counts.yaml", scene.JOB)
    bench.write("conf/targets/local.yaml", scene.TARGET)
    rows = [row | {"user": f"{row['user']}-{row['x'] % 5}"} for row in scene.hour(0, 40)]
    bench.rows("h0", rows)
    assert bench.run("land", "activity").code == 0


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
