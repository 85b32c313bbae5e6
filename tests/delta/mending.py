"""Damaged tables of the scene's job, mended by the engine of this process."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from rewindow.delta.mending import Mending
from rewindow.delta.warehouse import DeltaTables
from rewindow.machine import drive
from rewindow.plan.spec import Attempt
from rewindow.republish import Asked, Republished, republish
from rewindow.spark.local import LocalEngine
from tests.delta.scene import a_job

_names = count()


def mend(warehouse: str, targets: Collection[str] | None = (), **job: object) -> Republished:
    """Mend what is damaged, and publish ``targets`` (None: all) anew in any case."""
    tables = DeltaTables(warehouse)
    machine = republish(
        a_job(tables, **job),  # type: ignore[arg-type]
        Asked("main", targets),
        lambda: Attempt(f"mender-{next(_names)}"),
        LocalEngine(),
        tables,
        Mending(tables),
    )
    return drive(machine)
