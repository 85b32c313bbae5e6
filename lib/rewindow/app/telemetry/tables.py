"""Where a project's tables are, as telemetry names them: the sources and logs of feeds, and the outputs of jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from rewindow.app.open_target import output_location
from rewindow.app.telemetry.facts import Table
from rewindow.config.feed import SourceConfig, feed_spec
from rewindow.config.load import load_feed, load_job
from rewindow.config.target import PLATFORM, TargetConfig
from rewindow.contracts.ingest import SourceSpec
from rewindow.contracts.reserved_names import LOG_COLUMNS
from rewindow.control.ingest.landings import Feed
from rewindow.control.plan.spec import MAIN, TableSpec
from rewindow.dsl.flows import TIMESTAMP
from rewindow.streams.serde.schema import Column
from rewindow.tables.shared.warehouse import Warehouse

_PARTITIONED_BY = (Column("generation", "long"), Column("partition", "long"))
_UNKNOWN_HOST = "databricks"
"""The host of a catalog if neither ``DATABRICKS_HOST`` nor the target names one."""


@dataclass(frozen=True, slots=True)
class Locator:
    """The tables of a project on a target."""

    root: Path
    target: TargetConfig
    warehouse: str
    tables: Warehouse

    def sources(self, feed: str) -> dict[str, Table]:
        """Return the source of each log of a feed, as the feed's file names it."""
        config = load_feed(self.root, feed)
        spec = feed_spec(config, project_root=str(self.root), warehouse=self.warehouse)
        found = {}
        for log in spec.logs:
            given = config.logs[log.topic]
            found[log.topic] = replace(self._source(given.source, log.source), renamed=given.columns)
        return found

    def _source(self, given: SourceConfig, spec: SourceSpec) -> Table:
        if given.job is not None:
            return self._output_of(given)
        if given.table is not None:
            return self._at(given.table if self._host else given.table.replace(".", "/"))
        return Table(spec.location, format=spec.format)

    def logs(self, feed: Feed) -> dict[str, Table]:
        """Return the logs of a landed feed, with their columns and without versions."""
        return {topic: self._log(feed, topic) for topic in feed.definition.logs}

    def output(self, table: TableSpec, *, with_version: bool = False) -> Table:
        """Return an output table."""
        return self._at(table.path, table.columns, self.tables.version_of(table) if with_version else None)

    def log_version(self, feed: Feed, topic: str) -> int | None:
        """Return the Delta version of a log; None if there is no table."""
        return self.tables.version_of(TableSpec(self._log_path(feed, topic), ()))

    def _log_path(self, feed: Feed, topic: str) -> str:
        source_offsets = feed.definition.source_offsets.get(topic)
        if source_offsets:
            return source_offsets.table if self._host else source_offsets.table.replace(".", "/")
        return self.tables.log_path(feed.definition.feed, topic)

    def _log(self, feed: Feed, topic: str) -> Table:
        schema, own = feed.definition.logs[topic], feed.definition.source_offsets.get(topic)
        table, columns = self._at(self._log_path(feed, topic)), (*schema.key, *schema.value)
        if own is None:
            return replace(table, columns=(*_PARTITIONED_BY, *LOG_COLUMNS, *columns))
        renamed = {log: name for name, log in own.renames.items()}
        shown = tuple(Column(renamed.get(column.name, column.name), column.type) for column in columns)
        return replace(table, columns=shown, renamed={**renamed, TIMESTAMP: renamed.get(own.timestamp, own.timestamp)})

    def _output_of(self, source: SourceConfig) -> Table:
        config = load_job(self.root, str(source.job))
        return self._at(output_location(config, MAIN, self.target.catalog, str(source.output)))

    def _at(self, path: str, columns: tuple[Column, ...] = (), version: int | None = None) -> Table:
        location = self.tables.location_of(TableSpec(path, ()))
        if self._host:
            return Table(location, columns, version=version, catalog_host=self._host)
        name = path.replace("/", ".")
        return Table(location, columns, version=version, name=name, warehouse=self.warehouse)

    @property
    def _host(self) -> str | None:
        return catalog_host(self.target, os.environ) if self.target.catalog is not None else None


def catalog_host(target: TargetConfig, environ: Mapping[str, str]) -> str:
    """Return the host of a catalog: ``DATABRICKS_HOST``, or the Spark Connect server of the target."""
    server = target.connect if target.connect != PLATFORM else None
    given = environ.get("DATABRICKS_HOST", "") or server or ""
    host = urlsplit(given if "://" in given else f"https://{given}").netloc
    return host.rpartition("@")[2] or _UNKNOWN_HOST
