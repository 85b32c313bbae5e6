"""What differs between versions and installations of Airflow.

With 3.2 a retry starts the command again; the ledger makes that safe. A worker that has only Airflow's task SDK cannot tell
when a schedule is due; then each run of a backfill lands its own interval.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pendulum

try:
    from airflow.sdk import ResumableJobMixin
except ImportError:  # Airflow 3.2

    class ResumableJobMixin:  # type: ignore[no-redef]
        """Submits and waits, without resuming after a retry."""

        def __init__(self, *, durable: bool = True, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.durable = durable

        def execute_resumable(self: Any, context: Any) -> Any:
            """Submit the job and wait until it ends."""
            external_id = self.submit_job(context)
            self.poll_until_complete(external_id, context)
            return self.get_job_result(external_id, context)


def last_due(dag: Any) -> datetime | None:
    """Return the end of the last interval of a DAG's schedule that has ended; None if that is not known."""
    try:
        from airflow.serialization.encoders import coerce_to_core_timetable  # noqa: PLC0415 - a part that may be missing
    except ImportError:
        return None
    timetable = coerce_to_core_timetable(getattr(dag, "timetable", None))
    infer = getattr(timetable, "infer_manual_data_interval", None)
    end: datetime | None = infer(run_after=pendulum.now("UTC")).end if infer else None
    return end


__all__ = ["ResumableJobMixin", "last_due"]
