"""The configuration of a job's limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from rewindow.streams.settings import DEFAULTS


class LimitsConfig(BaseModel):
    """Resource limits of one task (`streams.settings.Limits`). They never change a row."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)

    store_rows: int = Field(default=DEFAULTS.store_rows, ge=1)
    """Rows of one store in one task."""
    outputs_per_record: int = Field(default=DEFAULTS.outputs_per_record, ge=1)
    """Records that one record produces in one topic."""
    punctuations_per_epoch: int = Field(default=DEFAULTS.punctuations_per_epoch, ge=1)
    """Calls of schedules in one task and landing."""
    store_memory: int = Field(default=DEFAULTS.store_memory, ge=1)
    """Approximate bytes of memory for the stores of a task. More is no error: the rest is spilled to disk."""
