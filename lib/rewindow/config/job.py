"""The configuration of a job: its topology, its feed, and the tables it writes."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import field_validator, model_validator

from rewindow.config.alerts import AlertsConfig
from rewindow.config.expectations import ExpectationConfig, expectations_of
from rewindow.config.field_types import (
    Cron,
    DottedName,
    Function,
    MisfitError,
    Name,
    OutputTable,
    Policy,
)
from rewindow.config.limits import LimitsConfig
from rewindow.config.value import ConfigValue
from rewindow.contracts.expectations import Expectation
from rewindow.streams.topology import Topology


class OutputConfig(ConfigValue):
    """The table of an output topic."""

    table: OutputTable
    """The table in the warehouse, like ``shop.daily_orders``."""
    expect: list[ExpectationConfig] = []
    """What the rows that a run adds must be like, checked before the run is committed."""


class SemanticsConfig(ConfigValue):
    """How a job's clocks work (D1, D8, D22). Part of what a checkpoint must match."""

    stream_time: Literal["max", "min"] = "max"
    """Stream time is the highest timestamp taken, or the smallest of all partitions (D1)."""
    stream_time_from: Literal["records", "watermark"] = "records"
    """What advances stream time: records alone, or the watermark of a landing, too."""
    wall_clock: Literal["stream_time", "run"] = "stream_time"
    """The simulated wall clock follows timestamps and watermarks, or with ``run`` jumps once, at the end of a run (D8)."""


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
    """Node -> error policy: ``fail``, ``retry 3`` or ``quarantine``."""
    on_code_change: Literal["refuse", "accept"] = "refuse"
    """Whether a run is refused (76) when functions or classes of the job changed since the checkpoint, or continues."""
    limits: LimitsConfig = LimitsConfig()
    """Resource limits of a task."""
    schedule: Cron | None = None
    """When Airflow runs the job: five fields in quotes, or a word such as ``@daily``."""
    alerts: AlertsConfig = AlertsConfig()
    """Bounds beyond which `rewindow status` reports the job."""

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
        return expectations_of(topic, self.outputs[topic].expect)


def nested(tables: list[str]) -> str | None:
    """Return a message if a table is written twice or lies inside another one, which owns its folder."""
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
    """Return two tables that are the same one, or of which the first contains the second."""
    ordered = sorted(tables, key=lambda table: table.lower().split("."))
    pairs = pairwise(ordered)
    return next(((one, two) for one, two in pairs if f"{two.lower()}.".startswith(f"{one.lower()}.")), None)


def unwritten_output(config: JobConfig, topology: Topology) -> tuple[str, str] | None:
    """Return an output that the job's file declares but the topology does not write, and a message. None: there is none."""
    written = [sink.topic for part in topology.sub_topologies() for sink in part.sinks if not sink.is_internal]
    for topic in config.outputs:
        if topic not in written:
            return topic, (
                f"output {topic!r} is declared, but the topology does not write it (it writes "
                f"{', '.join(written) or 'nothing'}): fix `outputs:` or the `.to(...)`"
            )
    return None
