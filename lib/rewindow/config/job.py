"""The configuration of a job: its topology, its feed, the tables it writes, their expectations, limits and alerts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from rewindow.config import field_types
from rewindow.config.field_types import (
    Bytes,
    ConfigValue,
    Cron,
    DottedName,
    DurationMs,
    Function,
    MisfitError,
    Name,
    OutputTable,
    Policy,
)
from rewindow.contracts.expectations import QUERY_TIMEOUT_MS, Expectation, Kind, OnFail
from rewindow.errors import ConfigError
from rewindow.streams.settings import DEFAULTS

if TYPE_CHECKING:
    from rewindow.streams.topology import Topology

_KINDS: Final = tuple(kind.value for kind in Kind)
_MOST_ALLOWED: Final = 1_000
_LONGEST_QUERY: Final = 20_000
_LIST: Final = {"type": "array", "items": field_types.TEXT, "minItems": 1, "uniqueItems": True}
_NAMES: Final = {"anyOf": [field_types.TEXT, _LIST]}
_KEY_OR_NAMES: Final = {"anyOf": [{"const": "key"}, _LIST]}
_SCALAR: Final = {"type": ["string", "number", "boolean"]}


def _scalar(value: object) -> Any:
    if isinstance(value, str | int):
        return value
    raise ValueError(f"{value!r} is not a value: write a number, a text, true or false")


_Scalar = Annotated[Any, PlainValidator(_scalar), WithJsonSchema(_SCALAR)]


def _bound(value: object) -> Any:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not a bound: write a number, or a text for a column of text")


_Bound = Annotated[Any, PlainValidator(_bound), WithJsonSchema({"type": ["string", "number"]})]
_Allowed = Annotated[list[_Scalar], Field(min_length=1, max_length=_MOST_ALLOWED)]


def _names(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(one, str) and one for one in names):
        raise ValueError(f"{value!r} names no columns: write a column, or a list like [carrier, origin]")
    if len(set(names)) < len(names):
        raise ValueError(f"[{', '.join(names)}] names a column twice: list each column once")
    return tuple(names)


_Names = Annotated[tuple[str, ...], PlainValidator(_names), WithJsonSchema(_NAMES)]


def _unique(value: object) -> tuple[str, ...]:
    if value == "key":
        return ()
    if value is None or isinstance(value, str | bool):
        raise ValueError(f"{value!r} is not key or a list of columns: write key, or a list like [carrier, origin]")
    return _names(value)


_UniqueNames = Annotated[tuple[str, ...], PlainValidator(_unique), WithJsonSchema(_KEY_OR_NAMES)]


def _query(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_QUERY:
        raise ValueError("is not a query: write SELECT ..., which returns the offending rows")
    return value.strip().rstrip(";")


_Query = Annotated[str, PlainValidator(_query), WithJsonSchema({"type": "string", "pattern": r"\S"})]
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_SHAPE: Final = {"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,6})?\s*%$"}


def _share(value: object) -> float:
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found[1]) > 100:
        raise ValueError(f"{value!r} is not a share: write a percentage from 0% to 100%, like 0.5%")
    return float(found[1]) / 100


_Share = Annotated[float, PlainValidator(_share), WithJsonSchema(_SHAPE)]


class RangeConfig(ConfigValue):
    """Limits of a column's values. A null is within every limit.

    NaN counts as the largest number, so it exceeds every ``max``.
    """

    column: str
    """The column."""
    min: _Bound | None = None
    """The smallest value allowed."""
    max: _Bound | None = None
    """The largest value allowed."""

    @model_validator(mode="after")
    def _has_bound(self) -> RangeConfig:
        _check_has_bound(self.min, self.max)
        return self


class RowsConfig(ConfigValue):
    """Limits of the number of rows that a run adds to the output."""

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


class ValuesConfig(ConfigValue):
    """The allowed values of a column. A null is allowed."""

    column: str
    """The column."""
    allowed: _Allowed
    """The values, as numbers, texts or booleans."""


class ExpectationConfig(ConfigValue):
    """One expectation of an output: one of ``not_null``, ``unique``, ``range``, ``values``, ``rows``, ``late`` and ``sql``."""

    not_null: _Names | None = None
    """Columns that have no null in the new rows: one, or a list."""
    unique: _UniqueNames | None = None
    """``key``: no two new rows have the same key and window. A list of columns: no two new rows have equal values in them."""
    range: RangeConfig | None = None
    """Limits of a column's values in the new rows."""
    values: ValuesConfig | None = None
    """The values that a column may have in the new rows."""
    rows: RowsConfig | None = None
    """Limits of the number of new rows."""
    late: _Share | None = None
    """Largest share of the run's records that may be late, like ``1%``. The node that drops most late records counts."""
    sql: _Query | None = None
    """A query that returns the offending rows. It reads ``new_rows``, and ``previous_rows``, the rows of the previous run."""
    timeout_ms: DurationMs | None = Field(default=None, alias="timeout")
    """How long ``sql`` may take; ``5m`` by default. If it takes longer, the run ends without a commit."""
    on_fail: Literal["warn", "hold", "fail"] = "fail"
    """What happens to a run that does not meet the expectation: it is published (``warn``), held back (``hold``), or not
    committed."""
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The name in results and messages. Default: the expectation in words."""

    @model_validator(mode="after")
    def _is_one(self) -> ExpectationConfig:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            what = f"{' and '.join(given)} are two expectations" if given else "there is no expectation"
            raise MisfitError(f"{what}: write one of {', '.join(_KINDS)} in each item of the list", *given[1:2])
        if self.timeout_ms is not None and self.sql is None:
            raise MisfitError("timeout is for sql: remove it", "timeout")
        return self

    def of(self, output: str) -> Expectation:
        """Return this expectation, bound to an output."""
        made = _made(self, output)
        return made if self.name is None else replace(made, name=self.name)


class OutputConfig(ConfigValue):
    """The table of an output topic."""

    table: OutputTable
    """The table in the warehouse, like ``shop.daily_orders``."""
    expect: list[ExpectationConfig] = []
    """Conditions on the rows that a run adds. They are checked before the run is committed."""


class SemanticsConfig(ConfigValue):
    """How a job's clocks work (D1, D8, D22). These settings are part of the job's fingerprint."""

    stream_time: Literal["max", "min"] = "max"
    """``max``: stream time is the highest timestamp processed. ``min``: it is the smallest of the partitions' times (D1)."""
    stream_time_from: Literal["records", "watermark"] = "records"
    """What advances stream time: only records, or also the watermark of each landing."""
    wall_clock: Literal["stream_time", "run"] = "stream_time"
    """``stream_time``: the simulated wall clock follows timestamps and watermarks. ``run``: it jumps once, at the end of a run
    (D8)."""


class AlertsConfig(ConfigValue):
    """Limits beyond which `rewindow status` reports the job. They change neither runs nor rows."""

    freshness_ms: DurationMs | None = Field(default=None, alias="freshness")
    """How far the watermark of the job's last run may be behind the present time, like ``2h``."""
    silent_ms: DurationMs | None = Field(default=None, alias="silent")
    """If results wait for a partition: the largest allowed time between the partition's newest record and the feed's newest
    record, like ``1d``."""
    waiting: int | None = Field(default=None, ge=0)
    """Number of landings that may wait to be processed."""
    late: _Share | None = None
    """Share of the records that may be late, like ``1%``. The node that drops most late records counts."""
    skipped: _Share | None = None
    """Share of the records that may be skipped. The node that skips most records counts."""
    expired: _Share | None = None
    """Share of the records that may be expired. The store that drops most expired records counts."""
    quarantined: _Share | None = None
    """Share of the records that may be quarantined: by the job's nodes and by the landings of its feed, added together."""
    runs: int = Field(default=24, ge=1, le=400)
    """How many of the last runs the shares are computed from."""
    files: int | None = Field(default=None, ge=1)
    """Number of files that the job's state and journal may have."""
    size: Bytes | None = Field(default=None, ge=ByteSize(1 << 20))
    """Size that the job's state and journal may have, in bytes or like ``10GiB``; at least ``1MiB`` (1,048,576)."""
    restore: int | None = Field(default=None, ge=1)
    """Number of runs whose changelogs the next run may have to read. A snapshot replaces them after 30 runs, or after 240
    runs if these change few rows, so a useful limit is 31 or more."""


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
    """Items of one list that an aggregate (`Collect`, or one of your own) makes in record execution. In that execution, each
    record copies the list, so the time grows with the square of its length. Vectorized execution has no such limit."""
    store_memory: int = Field(default=DEFAULTS.store_memory, ge=1)
    """Memory of all stores of a task, in bytes. State beyond this spills to disk."""


class JobConfig(ConfigValue):
    """A topology, the feed it replays and the tables it writes. The job's name identifies its state: never change it."""

    job: Name
    """The name of the job, equal to the file's name. It identifies the state: never change it."""
    topology: Function
    """The function that builds the topology: ``module:function``."""
    feed: Name
    """The feed that the job replays."""
    outputs: dict[DottedName, OutputConfig] = {}
    """The table of each topic that the topology writes with ``to``."""
    semantics: SemanticsConfig = SemanticsConfig()
    """How the job's clocks work."""
    dropped: Literal["count", "quarantine"] = "count"
    """Whether late, skipped and expired records are only counted, or also written to the quarantine."""
    on_error: dict[str, Policy] = {}
    """The error policy of each node: ``fail``, ``retry 3`` or ``quarantine``."""
    on_code_change: Literal["refuse", "accept"] = "refuse"
    """What a run does if functions or classes of the job changed since the checkpoint: it is refused (76), or continues."""
    landings_per_run: int | None = Field(default=None, ge=1)
    """The maximum number of landings in one run. A command executes as many runs as it needs. If it is killed, at most one
    run is repeated."""
    limits: LimitsConfig = LimitsConfig()
    """Resource limits of a task."""
    schedule: Cron | None = None
    """When Airflow runs the job: five fields in quotes, or a word such as ``@daily``."""
    alerts: AlertsConfig = AlertsConfig()
    """Limits beyond which `rewindow status` reports the job."""

    @field_validator("outputs")
    @classmethod
    def _tables_apart(cls, outputs: dict[str, OutputConfig]) -> dict[str, OutputConfig]:
        problem = nested([output.table for output in outputs.values()])
        if problem:
            pair = overlapping([output.table for output in outputs.values()]) or ()
            topic = next(topic for topic in reversed(outputs) if outputs[topic].table in pair)
            raise MisfitError(problem, topic, "table")
        return outputs

    @model_validator(mode="after")
    def _names_apart(self) -> JobConfig:
        for topic in self.outputs:
            try:
                self.expectations_of(topic)
            except MisfitError as error:
                raise MisfitError(str(error), "outputs", topic, *error.keys) from error
        return self

    def expectations_of(self, topic: str) -> tuple[Expectation, ...]:
        """Return the expectations of an output."""
        return _expectations_of(topic, self.outputs[topic].expect)


def nested(tables: list[str]) -> str | None:
    """Return a message if two outputs have the same table, or a table lies in the folder of another; otherwise None."""
    pair = overlapping(tables)
    if pair is None:
        return None
    table, following = pair
    if table == following:
        return f"table {table} is written twice: give each output its own table"
    if table.lower() == following.lower():
        return f"tables {table} and {following} differ only in case, which catalogs and some disks ignore: rename one of them"
    return f"table {following} would lie inside the folder of table {table}: rename one of them"


def overlapping(tables: list[str]) -> tuple[str, str] | None:
    """Return two tables that are equal, or of which the first contains the second; None if there are none."""
    ordered = sorted(tables, key=lambda table: table.lower().split("."))
    pairs = pairwise(ordered)
    return next(((one, two) for one, two in pairs if f"{two.lower()}.".startswith(f"{one.lower()}.")), None)


def unwritten_output(config: JobConfig, topology: Topology) -> tuple[str, ConfigError] | None:
    """Return an output that the job's file declares but the topology does not write, with the error; None if there is none."""
    written = [sink.topic for part in topology.sub_topologies() for sink in part.sinks if not sink.is_internal]
    for topic in config.outputs:
        if topic not in written:
            return topic, ConfigError(
                "output-not-written",
                "output {output!r} is declared, but the topology does not write it (it writes {topics}): fix `outputs:` or the "
                "`.to(...)`",
                output=topic,
                topics=", ".join(written) or "nothing",
            )
    return None


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
    name, timeout_ms = f"sql {' '.join((config.sql or '').split())[:60]}", config.timeout_ms or QUERY_TIMEOUT_MS
    return Expectation(output, name, Kind.SQL, on_fail, query=config.sql or "", timeout_ms=timeout_ms)


def _expectations_of(output: str, written: Sequence[ExpectationConfig]) -> tuple[Expectation, ...]:
    """Return the expectations of an output. Raises `MisfitError` if two of them have the same name."""
    made = tuple(one.of(output) for one in written)
    for index, one in enumerate(made):
        if any(one.name == other.name for other in made[:index]):
            raise MisfitError(f"two expectations are named {one.name!r}: give one of them a `name:`", "expect", index)
    return made
