"""The trigger that waits until a feed's logs are complete through a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from rewindow.airflow.hooks import BucketHook
from rewindow.airflow.log_watermarks import is_complete
from rewindow.errors import RewindowError, StorageError


class LogCompleteTrigger(BaseTrigger):
    """A trigger that fires when a feed's watermark has reached ``through``. It polls the ledger every ``poll_s`` seconds."""

    def __init__(
        self,
        *,
        feed: str,
        through: str,
        project: str,
        target: str = "local",
        conn_id: str | None = None,
        poll_s: float = 30.0,
    ) -> None:
        super().__init__()
        self.feed = feed
        self.through = through
        self.project = project
        self.target = target
        self.conn_id = conn_id
        self.poll_s = poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the path of the class and its arguments."""
        given = {name: getattr(self, name) for name in ("feed", "through", "project", "target", "conn_id", "poll_s")}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the logs are complete, or there was an error that no retry can fix."""
        where = (self.project, self.target, self.feed, self.through)
        while True:
            try:
                settings = await BucketHook(self.conn_id).aget_conn()
                if await asyncio.to_thread(is_complete, *where, settings):
                    yield TriggerEvent({"complete": True})
                    return
            except StorageError as error:  # the next poll may succeed
                self.log.warning("%s", error)
            except RewindowError as error:
                yield TriggerEvent({"complete": False, "error": str(error)})
                return
            await asyncio.sleep(self.poll_s)
