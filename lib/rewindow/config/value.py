"""What every part of the configuration is: a frozen value that takes no key it does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ConfigValue(BaseModel):
    """A part of a file, as it was written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)
