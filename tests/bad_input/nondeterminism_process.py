"""`run` or `verify` of planted jobs in separate processes, as if on different days: `python -m ... run FOLDER local`.

Tasks are grouped and each group imports its modules again, as in Spark's workers. It prints the result of each command.
"""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from rewindow.contracts.staged_files import TaskReport
from rewindow.contracts.tasks import SubTopologyWork
from rewindow.engine.spark.spark_engine import groups_of
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.engine.worker.task_execution import run_task
from tests.bad_input import nondeterminism, scene


class GroupedEngine(LocalEngine):
    """Runs the groups of tasks one after another, each as in a new worker."""

    def __init__(self, *_args: Any, slots: int, **_options: Any) -> None:
        super().__init__()
        self._slots = slots

    def run_sub_topology(self, work: SubTopologyWork) -> list[TaskReport]:
        """Run one sub-topology and return the reports by partition."""
        work, reports = self.with_execution(work), []
        for group in groups_of(work.tasks, self._slots):
            for name in [name for name in sys.modules if name.startswith("bench_")]:
                del sys.modules[name]
            reports += [run_task(work, task) for task in group]
        return sorted(reports, key=lambda report: report.partition)


def main(command: str, folder: Path, engine: str) -> None:
    """Run the command in the project of each planted job: all jobs in this process, or those in `ON_SPARK` on Spark."""
    with scene.without_spark() if engine == "local" else nullcontext(), pytest.MonkeyPatch.context() as patched:
        if engine == "local":
            patched.setattr("rewindow.engine.spark.spark_engine.SparkEngine", GroupedEngine)
        template = scene.Bench(folder / "template")
        if command == "run":
            land(template)
        found = {}
        for number, planted in enumerate([*nondeterminism.FOUND, *nondeterminism.FINE]):
            if engine == "local" or planted.name in nondeterminism.ON_SPARK:
                answer = done(command, template, folder / str(number), planted)
                found[planted.name] = [answer.code, answer.out, answer.err]
    sys.stdout.write(json.dumps(found))


def done(command: str, template: scene.Bench, root: Path, planted: nondeterminism.Planted) -> scene.Answer:
    """Run the command in a planted job's project, which is created on first use."""
    bench = scene.Bench(root)
    if command == "run":
        name = f"bench_{root.name}"  # a new name, because Spark's workers keep imported modules
        shutil.copytree(template.root, root)
        bench.write(f"{name}.py", planted.module)
        bench.write("conf/jobs/counts.yaml", scene.JOB.replace("bench_job", name))
    bench.write("rates.txt", command)
    return bench.run(command, "counts", *(["--json"] if command == "verify" else []))


def land(bench: scene.Bench) -> None:
    """Land a few records over four partitions."""
    bench.write("conf/feeds/activity.yaml", scene.FEED.replace("partitions: 2", "partitions: 4"))
    bench.write("conf/targets/local.yaml", scene.TARGET)
    rows = [row | {"user": f"{row['user']}-{row['x'] % 5}"} for row in scene.hour(0, 40)]
    bench.rows("h0", rows)
    assert bench.run("land", "activity").code == 0


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
