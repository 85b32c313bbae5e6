"""`LogCompleteSensor`: wait until a feed's logs are complete through a time. It reads one small ledger, without a JVM."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from rewindow.airflow.dag_run import through_of
from rewindow.airflow.hooks import BucketHook
from rewindow.airflow.log_watermarks import is_complete
from rewindow.airflow.triggers import LogCompleteTrigger
from rewindow.errors import RewindowError, StorageError


class LogCompleteSensor(BaseSensorOperator):
    """Waits until the watermark of a feed's last landing has reached ``through``.

    Args:
        feed: The feed, which another DAG or tool lands.
        through: The time (ISO 8601). Default: the time at which the DAG run stops, as for `RewindowOperator`.
        project: The folder with ``conf/``.
        target: The target to read, a file of ``conf/targets``.
        conn_id: The Airflow connection with the credentials of the bucket; see `hooks.BucketHook`.
        deferrable: Wait in the triggerer, which occupies no worker slot.
    """

    template_fields = ("feed", "through", "project", "target", "conn_id")
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        feed: str,
        through: str | None = None,
        project: str = ".",
        target: str = "local",
        conn_id: str | None = None,
        deferrable: bool = False,
        poke_interval: float | timedelta = 30.0,
        mode: str = "reschedule",
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, mode=mode, **kwargs)
        self.feed = feed
        self.through = through
        self.project = project
        self.target = target
        self.conn_id = conn_id
        self.deferrable = deferrable

    def execute(self, context: Any) -> Any:
        """Wait in this process, or with ``deferrable`` in the triggerer."""
        through = self.through or through_of(context)
        if through is None:
            raise AirflowFailException(
                f"this DAG run has no interval: set through= of the sensor of feed {self.feed}, or trigger with a logical date"
            )
        self.through = through
        if not self.deferrable:
            return super().execute(context)
        if self.poke(context):
            return None
        every = self.poke_interval
        return self.defer(
            trigger=LogCompleteTrigger(
                feed=self.feed,
                through=through,
                project=self.project,
                target=self.target,
                conn_id=self.conn_id,
                poll_s=every.total_seconds() if isinstance(every, timedelta) else float(every),
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=float(self.timeout)) if self.timeout else None,
        )

    def poke(self, context: Any) -> bool:
        """Return whether the logs are complete now."""
        del context
        try:
            settings = BucketHook(self.conn_id).get_conn()
            return is_complete(self.project, self.target, self.feed, str(self.through), settings)
        except StorageError as error:  # the next poke may succeed
            self.log.warning("%s", error)
            return False
        except RewindowError as error:
            raise AirflowFailException(str(error)) from error

    def execute_complete(self, context: Any, event: dict[str, Any]) -> None:
        """Resume after the trigger has fired."""
        del context
        if not event.get("complete"):
            raise AirflowFailException(str(event.get("error")))
