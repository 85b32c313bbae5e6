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
    """Its name, such as `shop.daily_orders`."""


class SemanticsConfig(ConfigValue):
    """How a job's clocks work (D1, D8, D22). Part of what a checkpoint must match."""

    stream_time: Literal["max", "min"] = "max"
    """Whether stream time is the highest time taken, or KIP-138's lowest of all partitions."""
    stream_time_from: Literal["records", "watermark"] = "records"
    """Whether only records advance stream time, or each landing's watermark too."""
    wall_clock: Literal["stream_time", "run"] = "stream_time"
    """Whether the simulated wall clock follows the records, or jumps at the end of a run."""


class JobConfig(ConfigValue):
    """A topology, the feed it replays and the tables it writes. The job's name identifies its state: never change it."""

    job: Name
    """The name, equal to the file's. It names the job's state: never change it."""
    topology: Function
    """`module:function` that returns the topology, from the project's root."""
    feed: Name
    """The feed that it replays."""
    outputs: dict[DottedName, OutputConfig] = {}
    """The table of each topic that the topology writes."""
    semantics: SemanticsConfig = SemanticsConfig()
    """How its clocks work: part of the fingerprint, like the topology."""
    dropped: Literal["count", "quarantine"] = "count"
    """Whether late, skipped and expired records are only counted, or also written to the quarantine."""
    on_error: dict[str, Policy] = {}
    """Node -> error policy: ``fail``, ``retry 3`` or ``quarantine``."""
    on_code_change: Literal["refuse", "accept"] = "refuse"
    """Whether a run is refused (76) when functions or classes of the job changed since the checkpoint, or continues."""
    limits: LimitsConfig = LimitsConfig()
    """Limits of each task."""
    schedule: Cron | None = None
    """When Airflow runs it, as a cron expression or a preset such as `@daily`. None: only when triggered."""
    spark: SparkSettings = {}
    """Checked, but without effect: set Spark's settings in the target."""

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
    written = [sink.topic for part in topology.sub_topologies() for sink in part.sinks]
    for topic in config.outputs:
        if topic not in written:
            message = (
                f"conf/jobs/{config.job}.yaml declares output {topic!r}, but the topology does not write it "
                f"(it writes {', '.join(written) or 'nothing'}): fix `outputs:` or the `.to(...)`"
            )
            raise ConfigError(message)
