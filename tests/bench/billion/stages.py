"""The stages of the billion, each a process of its own: `python -m tests.bench.billion.stages FOLDER ROWS STAGE INLINE`.

Finished steps are skipped. A stage that was killed goes on with the step that it was in.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.spec import RunRequest
from tests.bench.billion.progress import Progress
from tests.bench.billion.records import HOURS, Size, end_of, name_of, write_hour
from tests.bench.day import FEED, JOB, write_project
from tests.bench.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Callable

GENERATE, LAND, REPLAY, CHECK = STAGES = ("generate", "land", "replay", "check")


class Scene:
    """A folder with the raw files, a project whose feed gets them day by day, and what is done."""

    def __init__(self, folder: Path, size: Size, inline: str) -> None:
        self.folder, self.size = folder, size
        self.raw, self.root = folder / "raw", folder / "project"
        self.progress = Progress(folder)
        if not (self.root / "conf").exists():
            write_project(self.root, execution="auto", landings="hourly", source="auto", advance=60)
            if inline:
                with (self.root / "conf/targets/local.yaml").open("a") as target:
                    target.write(f"inline: {inline}\n")
        (self.root / "raw").mkdir(exist_ok=True)
        self.raw.mkdir(exist_ok=True)

    def generate(self, hour: int) -> None:
        """Write the raw file of an hour."""
        write_hour(self.raw, hour, self.size.rows_of(hour))

    def land(self, day: int) -> dict[str, Any]:
        """Land the records that arrive in a day: 24 landings by one call."""
        for hour in range(day * HOURS, (day + 1) * HOURS):
            delivered = self.root / "raw" / name_of(hour)
            if not delivered.exists():
                os.link(self.raw / name_of(hour), delivered)
        self.project.land(FEED, until_ms=end_of(day))
        landings = len(self.project.tables.feed(FEED).landings)
        assert landings == (day + 1) * HOURS, f"{landings} landings after {day + 1} days"
        return {"landings": landings}

    def replay(self, day: int) -> None:
        """Run the job over the landings of a day."""
        self.project.run(JOB, RunRequest(through_landing=(day + 1) * HOURS))

    def check(self, day: int) -> dict[str, Any]:
        """Compare the results that a day closes with the exact ones."""
        from tests.bench.billion.answer import check_day

        return check_day(
            self.raw, Path(self.project.warehouse) / "bench" / "results", self.folder / "state", self.size, day
        )

    @property
    def project(self) -> OpenProject:
        """The project; Spark starts when it is needed."""
        if not hasattr(self, "_project"):
            self._project = OpenProject.open(self.root)
        return self._project

    def steps(self, stage: str) -> tuple[int, Callable[[int], dict[str, Any] | None]]:
        """Return the number of steps of a stage, and what does one."""
        works: dict[str, Callable[[int], dict[str, Any] | None]] = {
            GENERATE: self.generate,  # it records nothing
            LAND: self.land,
            REPLAY: self.replay,
            CHECK: self.check,
        }
        return self.size.days * (HOURS if stage == GENERATE else 1), works[stage]


def main(folder: Path, rows: int, stage: str, inline: str) -> None:
    """Do the steps of a stage that are not finished."""
    (folder / "tmp").mkdir(exist_ok=True)
    tempfile.tempdir = str(folder / "tmp")  # the exchange of a landing is larger than a folder in memory
    scene = Scene(folder, Size(rows), inline)
    meter = Meter()
    steps, work = scene.steps(stage)
    for number in range(steps):
        scene.progress.measure(stage, number, lambda: work(number), meter)  # noqa: B023 - called at once
        print(f"{stage} {number + 1} of {steps}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
