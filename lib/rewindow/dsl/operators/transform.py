"""Verbs that run a user's `FixedKeyProcessor` or legacy transformer, and check that the supplier made one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rewindow.errors import ConfigError
from rewindow.streams.legacy import Transformer, ValueTransformer
from rewindow.streams.processor import FixedKeyProcessor, Processor
from rewindow.streams.topology import describe_supplier

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ProcessValues:
    """Run a `FixedKeyProcessor`."""

    supplier: Callable[[], FixedKeyProcessor]

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"process_values({describe_supplier(self.supplier)})"

    def __call__(self) -> Processor:
        return checked(self.supplier(), FixedKeyProcessor, "process_values")


@dataclass(frozen=True, slots=True)
class Transform:
    """Run a `Transformer`. If it is flat, each call returns an iterable."""

    supplier: Callable[[], Transformer]
    is_flat: bool = False

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"{self._verb}({describe_supplier(self.supplier)})"

    @property
    def _verb(self) -> str:
        return "flat_transform" if self.is_flat else "transform"

    def __call__(self) -> Processor:
        transformer = checked(self.supplier(), Transformer, self._verb)
        transformer.is_flat = self.is_flat
        return transformer


@dataclass(frozen=True, slots=True)
class TransformValues:
    """Run a `ValueTransformer`. If it is flat, each call returns an iterable."""

    supplier: Callable[[], ValueTransformer]
    is_flat: bool = False

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"{self._verb}({describe_supplier(self.supplier)})"

    @property
    def _verb(self) -> str:
        return "flat_transform_values" if self.is_flat else "transform_values"

    def __call__(self) -> Processor:
        transformer = checked(self.supplier(), ValueTransformer, self._verb)
        transformer.is_flat = self.is_flat
        return transformer


def checked(made: object, wanted: type[Made], verb: str) -> Made:
    """Return what a supplier made. Raises `ConfigError` if it is not of the wanted class."""
    if not isinstance(made, wanted):
        message = f"{verb}: the supplier returned a {type(made).__name__}, not a {wanted.__name__}"
        raise ConfigError(message)
    return made
