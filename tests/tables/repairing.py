"""Fix drifted tables of the scene's job with the engine in this process."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from rewindow.control.drift_repair import Republished, RepublishRequest, republish
from rewindow.control.ledger_steps import drive
from rewindow.control.plan.spec import Attempt
from rewindow.engine.worker.local_engine import LocalEngine
from rewindow.tables.delta.repair import Repair
from rewindow.tables.delta.warehouse import DeltaTables
from tests.tables.scene import a_job

_names = count()


def fix(warehouse: str, targets: Collection[str] | None = (), **job: object) -> Republished:
    """Fix drifted tables, and republish ``targets`` (None: all) in any case."""
    tables = DeltaTables(warehouse)
    machine = republish(
        a_job(tables, **job),  # type: ignore[arg-type]
        RepublishRequest("main", targets),
        lambda: Attempt(f"mender-{next(_names)}"),
        LocalEngine(),
        tables,
        Repair(tables),
    )
    return drive(machine)
