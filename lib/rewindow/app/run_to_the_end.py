"""Run a job until a request is done, also if an attempt that did not finish left a plan."""

from __future__ import annotations

from collections.abc import Callable

from rewindow.app.open_project import OpenProject
from rewindow.control.plan.planner import UpToDate
from rewindow.control.plan.spec import RunRequest
from rewindow.control.run import RunReport


def run_to_the_end(
    project: OpenProject, job: str, request: RunRequest, on_step: Callable[[str], None] | None = None
) -> list[RunReport | UpToDate]:
    """Return the results of all runs that a request needs, of which the last one answers it.

    The plan of an attempt that did not finish is completed first, unchanged, and may stop short of the request.
    """
    results = [project.run(job, request, on_step)]
    while isinstance(results[-1], RunReport) and results[-1].spec.takes_over is not None:
        results.append(project.run(job, request, on_step))
    return results
