"""The node of `KStream.where`: a filter whose condition can be evaluated on whole columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from rewindow.dsl.operators.conditions import Condition
from rewindow.errors import DataError
from rewindow.streams.processor import Processor
from rewindow.streams.record import Record


@dataclass(frozen=True, slots=True)
class Where:
    """Keep the records for which a condition is true, not false or null."""

    keeps_key: ClassVar[bool] = True

    condition: Condition

    def __call__(self) -> Processor:
        return _Where(self.condition)

    def describe(self) -> str:
        """See `topology.describe_supplier`."""
        return f"where({self.condition})"


class _Where(Processor):
    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def process(self, record: Record) -> None:
        if self._condition.truth(partial(look_in, record, "where")):
            self.context.forward(record)


def look_in(record: Record, verb: str, name: str) -> Any:
    """Return the value of a name in a record. Raises `DataError` listing the known names."""
    fields = getattr(record.value, "_fields", ())
    if name in fields:
        return getattr(record.value, name)
    if name in ("key", "value", "timestamp"):
        return getattr(record, name)
    if record.value is None:
        return None  # as on whole columns: the fields of a null row are null
    message = f"{verb}(...): there is no field {name!r}: use one of {', '.join([*fields, 'key', 'value', 'timestamp'])}"
    raise DataError(message)
