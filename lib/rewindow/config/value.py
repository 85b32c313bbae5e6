"""The base class of configuration values: frozen, and strict about unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ConfigValue(BaseModel):
    """A part of a configuration file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)
