"""The expectations of an output: what a job's file expects of the new rows of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from rewindow.config import shapes
from rewindow.config.alerts import Share
from rewindow.config.field_types import MisfitError
from rewindow.config.value import ConfigValue
from rewindow.contracts.expectations import Expectation, Kind, OnFail

_KINDS: Final = tuple(kind.value for kind in Kind)
_MOST_ALLOWED: Final = 1_000
_LONGEST_QUERY: Final = 20_000


def _scalar(value: object) -> Any:
    if isinstance(value, str | int):
        return value
    raise ValueError(f"{value!r} is not a value: write a number, a text, true or false")


def _bound(value: object) -> Any:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not a bound: write a number, or a text for a column of text")


def _names(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(one, str) and one for one in names):
        raise ValueError(f"{value!r} names no columns: write a column, or a list like [carrier, origin]")
    if len(set(names)) < len(names):
        raise ValueError(f"[{', '.join(names)}] names a column twice: list each column once")
    return tuple(names)


def _unique(value: object) -> tuple[str, ...]:
    if value == "key":
        return ()
    if value is None or isinstance(value, str | bool):
        raise ValueError(f"{value!r} is not key or a list of columns: write key, or a list like [carrier, origin]")
    return _names(value)


def _query(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_QUERY:
        raise ValueError("is not a query: write SELECT ..., which returns the offending rows")
    return value.strip().rstrip(";")


_LIST: Final = {"type": "array", "items": shapes.TEXT, "minItems": 1, "uniqueItems": True}
_NAMES: Final = {"anyOf": [shapes.TEXT, _LIST]}
_KEY_OR_NAMES: Final = {"anyOf": [{"const": "key"}, _LIST]}
_SCALAR: Final = {"type": ["string", "number", "boolean"]}

Scalar = Annotated[Any, PlainValidator(_scalar), WithJsonSchema(_SCALAR)]
Bound = Annotated[Any, PlainValidator(_bound), WithJsonSchema({"type": ["string", "number"]})]
Allowed = Annotated[list[Scalar], Field(min_length=1, max_length=_MOST_ALLOWED)]
Names = Annotated[tuple[str, ...], PlainValidator(_names), WithJsonSchema(_NAMES)]
UniqueNames = Annotated[tuple[str, ...], PlainValidator(_unique), WithJsonSchema(_KEY_OR_NAMES)]
Query = Annotated[str, PlainValidator(_query), WithJsonSchema({"type": "string", "pattern": r"\S"})]


class RangeConfig(ConfigValue):
    """Bounds of a column's values. A null meets every bound, NaN meets none."""

    column: str
    """The column."""
    min: Bound | None = None
    """The smallest value allowed."""
    max: Bound | None = None
    """The largest value allowed."""

    @model_validator(mode="after")
    def _has_bound(self) -> RangeConfig:
        _check_has_bound(self.min, self.max)
        return self


class ValuesConfig(ConfigValue):
    """The allowed values of a column. A null is allowed."""

    column: str
    """The column."""
    allowed: Allowed
    """The values, as numbers, texts or truths."""


class RowsConfig(ConfigValue):
    """Bounds of the number of rows that a run adds to the output."""

    min: int | None = Field(default=None, ge=0)
    """The smallest number allowed."""
    max: int | None = Field(default=None, ge=0)
    """The largest number allowed."""

    @model_validator(mode="after")
    def _has_bounds(self) -> RowsConfig:
        _check_has_bound(self.min, self.max)
        if self.min is not None and self.max is not None and self.min > self.max:
            raise MisfitError(f"min {self.min} is above max {self.max}: swap them", "min")
        return self


class ExpectationConfig(ConfigValue):
    """One expectation of an output: one of ``not_null``, ``unique``, ``range``, ``values``, ``rows``, ``late`` and ``sql``."""

    not_null: Names | None = None
    """Columns that have no null in the new rows: one, or a list."""
    unique: UniqueNames | None = None
    """``key``: no two new rows have the same key and window. Or a list of columns that no two new rows share."""
    range: RangeConfig | None = None
    """Bounds of a column's values in the new rows."""
    values: ValuesConfig | None = None
    """The values that a column may have in the new rows."""
    rows: RowsConfig | None = None
    """Bounds of the number of new rows."""
    late: Share | None = None
    """Largest share of the run's records that may be late, like ``1%``. It is that of the node that drops most."""
    sql: Query | None = None
    """A query that returns offending rows. It reads ``new_rows`` and ``previous_rows``, those of the run before."""
    on_fail: Literal["warn", "hold", "fail"] = "fail"
    """What becomes of a run that does not meet it: it is published, held back, or not committed."""
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The name in results and messages. Default: the expectation in words."""

    @model_validator(mode="after")
    def _is_one(self) -> ExpectationConfig:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            what = f"{' and '.join(given)} are two expectations" if given else "there is no expectation"
            raise MisfitError(f"{what}: write one of {', '.join(_KINDS)} in each item of the list", *given[1:2])
        return self

    def of(self, output: str) -> Expectation:
        """Return the expectation of an output."""
        made = _made(self, output)
        return made if self.name is None else replace(made, name=self.name)


def _check_has_bound(low: Any, high: Any) -> None:
    if low is None and high is None:
        raise MisfitError("there is no bound: write min, max or both")


def _made(config: ExpectationConfig, output: str) -> Expectation:
    on_fail = OnFail(config.on_fail)
    if config.not_null is not None:
        return Expectation(output, f"not_null {', '.join(config.not_null)}", Kind.NOT_NULL, on_fail, config.not_null)
    if config.unique is not None:
        return Expectation(output, f"unique {', '.join(config.unique) or 'key'}", Kind.UNIQUE, on_fail, config.unique)
    if config.range is not None:
        bounds = config.range
        name = f"range {bounds.column}"
        return Expectation(output, name, Kind.RANGE, on_fail, (bounds.column,), bounds.min, bounds.max)
    if config.values is not None:
        column, allowed = config.values.column, tuple(config.values.allowed)
        return Expectation(output, f"values {column}", Kind.VALUES, on_fail, (column,), allowed=allowed)
    if config.rows is not None:
        return Expectation(output, "rows", Kind.ROWS, on_fail, (), config.rows.min, config.rows.max)
    if config.late is not None:
        return Expectation(output, "late", Kind.LATE, on_fail, (), None, config.late)
    return Expectation(
        output, f"sql {' '.join((config.sql or '').split())[:60]}", Kind.SQL, on_fail, query=config.sql or ""
    )


def expectations_of(output: str, written: Sequence[ExpectationConfig]) -> tuple[Expectation, ...]:
    """Return the expectations of an output. Raises `MisfitError` for a name that two of them have."""
    made = tuple(one.of(output) for one in written)
    for index, one in enumerate(made):
        if any(one.name == other.name for other in made[:index]):
            raise MisfitError(f"two expectations are named {one.name!r}: give one of them a `name:`", "expect", index)
    return made
