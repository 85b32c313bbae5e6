"""The checkpoint that a run resumes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewindow.control.plan.job_state import CommittedRun
from rewindow.control.plan.planned_tasks import Restored


@dataclass(frozen=True, slots=True)
class Checkpoint(Restored):
    """What a run resumes from, and what it costs to read: ``rows`` and ``bytes`` of changelog files."""

    rows: int = 0
    bytes: int = 0


def since_last_added(chain: Sequence[CommittedRun], target: str) -> Sequence[CommittedRun]:
    """Leave out the runs before a store was last added: a store that was removed and added again begins empty."""
    gone = [number for number, run in enumerate(chain, start=1) if target not in run.spec.binding.tables]
    return chain[gone[-1] :] if gone else chain
