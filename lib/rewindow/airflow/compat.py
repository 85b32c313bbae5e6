"""Compatibility with Airflow 3.2, where a retry starts the command again. The ledger makes that safe."""

from __future__ import annotations

from typing import Any

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


__all__ = ["ResumableJobMixin"]
