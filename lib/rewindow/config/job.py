"""A job: its topology, its feed, the tables it writes. ``semantics`` is part of its meaning, and fingerprinted."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import field_validator

from rewindow.config.limits import LimitsConfig
from rewindow.config.value import ConfigValue
from rewindow.config.words import Cron, DottedName, Function, Name, OutputTable, Policy, SparkSettings
from rewindow.errors import ConfigError
from rewindow.streams.topology import Topology


class OutputConfig(ConfigValue):
    """The table of an output topic."""

    table: OutputTable


class SemanticsConfig(ConfigValue):
    """What time means to a job (D1, D8, D22). Part of the job's fingerprint."""

    stream_time: Literal["max", "min"] = "max"
    stream_time_from: Literal["records", "watermark"] = "records"
    wall_clock: Literal["stream_time", "run"] = "stream_time"


class JobConfig(ConfigValue):
    """A topology, the feed it replays and the tables it writes. The name names the branches: it never changes."""

    job: Name
    topology: Function
    feed: Name
    outputs: dict[DottedName, OutputConfig] = {}
    semantics: SemanticsConfig = SemanticsConfig()
    dropped: Literal["count", "quarantine"] = "count"
    """What becomes of late, skipped and expired records: counted by reason, or rows of the quarantine too."""
    on_error: dict[str, Policy] = {}
    """By node what becomes of a record at which its code fails: ``fail``, ``retry 3``, ``quarantine``."""
    on_code_change: Literal["refuse", "accept"] = "refuse"
    """What a run does when functions or classes of the job changed since the checkpoint: exit with 76, or continue."""
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
    """Say which table is written twice or lies inside another: a path table owns its folder."""
    ordered = sorted(tables, key=lambda table: table.split("."))
    for table, following in pairwise(ordered):
        if table == following:
            return f"the table {table} is written twice: one table, one output of one job"
        if following.startswith(f"{table}."):
            return f"the table {following} would lie inside the folder of {table}: rename one of them"
    return None


def check_outputs(config: JobConfig, topology: Topology) -> None:
    """See that a topology writes what its job's file names. Raises `ConfigError` (78)."""
    written = [sink.topic for part in topology.sub_topologies() for sink in part.sinks]
    for topic in config.outputs:
        if topic not in written:
            message = (
                f"conf/jobs/{config.job}.yaml names the output {topic!r}, which the topology does not write "
                f"(it writes {', '.join(written) or 'nothing'}): fix `outputs:` or the `.to(...)`"
            )
            raise ConfigError(message)
