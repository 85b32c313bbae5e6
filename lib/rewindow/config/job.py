"""The configuration of a job: its topology, its feed, and the tables it writes."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import field_validator

from rewindow.config.field_types import Cron, DottedName, Function, Name, OutputTable, Policy, SparkSettings
from rewindow.config.limits import LimitsConfig
from rewindow.config.value import ConfigValue
from rewindow.errors import ConfigError
from rewindow.streams.topology import Topology


class OutputConfig(ConfigValue):
    """The table of an output topic."""

    table: OutputTable


class SemanticsConfig(ConfigValue):
    """How a job's clocks work (D1, D8, D22). Part of what a checkpoint must match."""

    stream_time: Literal["max", "min"] = "max"
    stream_time_from: Literal["records", "watermark"] = "records"
    wall_clock: Literal["stream_time", "run"] = "stream_time"


class JobConfig(ConfigValue):
    """A topology, the feed it replays and the tables it writes. The job's name identifies its state: never change it."""

    job: Name
    topology: Function
    feed: Name
    outputs: dict[DottedName, OutputConfig] = {}
    semantics: SemanticsConfig = SemanticsConfig()
    dropped: Literal["count", "quarantine"] = "count"
    """Whether late, skipped and expired records are only counted, or also written to the quarantine."""
    on_error: dict[str, Policy] = {}
    """Node -> error policy: ``fail``, ``retry 3`` or ``quarantine``."""
    on_code_change: Literal["refuse", "accept"] = "refuse"
    """Whether a run is refused (76) when functions or classes of the job changed since the checkpoint, or continues."""
    limits: LimitsConfig = LimitsConfig()
    schedule: Cron | None = None
    spark: SparkSettings = {}

    @field_validator("outputs")
    @classmethod
    def _tables_apart(cls, outputs: dict[str, OutputConfig]) -> dict[str, OutputConfig]:
        problem = nested([output.table for output in outputs.values()])
        if problem:
            raise ValueError(problem)
        return outputs


def nested(tables: list[str]) -> str | None:
    """Return a message if a table is written twice or lies inside another one, which owns its folder."""
    ordered = sorted(tables, key=lambda table: table.lower().split("."))
    for table, following in pairwise(ordered):
        if table == following:
            return f"table {table} is written twice: give each output its own table"
        if table.lower() == following.lower():
            return f"tables {table} and {following} differ only in case, which catalogs and some disks ignore: rename one of them"
        if following.lower().startswith(f"{table.lower()}."):
            return f"table {following} would lie inside the folder of table {table}: rename one of them"
    return None


def check_outputs(config: JobConfig, topology: Topology) -> None:
    """Check that a topology writes the outputs that the job's file declares. Raises `ConfigError` (78)."""
    written = [sink.topic for part in topology.sub_topologies() for sink in part.sinks if not sink.is_internal]
    for topic in config.outputs:
        if topic not in written:
            message = (
                f"conf/jobs/{config.job}.yaml declares output {topic!r}, but the topology does not write it "
                f"(it writes {', '.join(written) or 'nothing'}): fix `outputs:` or the `.to(...)`"
            )
            raise ConfigError(message)
