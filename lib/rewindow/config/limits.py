"""The configuration of a job's limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from rewindow.streams.settings import DEFAULTS


class LimitsConfig(BaseModel):
    """Resource limits of one task (`streams.settings.Limits`). They never change a row."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)

    store_rows: int = Field(default=DEFAULTS.store_rows, ge=1)
    """Rows of one store."""
    outputs_per_record: int = Field(default=DEFAULTS.outputs_per_record, ge=1)
    """Records written to one topic for one input record."""
    punctuations_per_epoch: int = Field(default=DEFAULTS.punctuations_per_epoch, ge=1)
    """Calls of schedules in one epoch."""
    list_items: int = Field(default=DEFAULTS.list_items, ge=1)
    """Items of one list that an aggregate (`Collect`, or one of your own) makes in record execution: each record copies the
    list, so the time grows with the square of its length. Vectorized execution has no such limit."""
    store_memory: int = Field(default=DEFAULTS.store_memory, ge=1)
    """Memory of all stores of a task, in bytes. What exceeds it spills to disk."""
