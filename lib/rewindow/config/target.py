"""A target: where the tables are and where the work is done. Nothing in it changes a row."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rewindow.config.words import Location, Name, SparkSettings, StorageOptions

_MASTER = re.compile(r"(spark|k8s)://\S+|yarn")
_HOME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.[A-Za-z0-9_][A-Za-z0-9_-]*")
_REMOTE = re.compile(r"sc://[^\s/:]+(:\d+)?(/\S*)?")

INLINE = 100_000
"""What Spark and a second core would save above so many records, they cost below (ADR-68)."""

PLATFORM = "platform"
"""In place of an address: the session that the platform gives to its jobs, as Databricks does."""


def _master(text: str) -> str:
    if not _MASTER.fullmatch(text):
        raise ValueError(
            f"{text!r} is no cluster: write spark://host:7077, yarn or k8s://...; leave it out to work here"
        )
    return text


def _home(text: str) -> str:
    if not _HOME.fullmatch(text):
        raise ValueError(f"{text!r} is no schema of a catalog: write it like main.rewindow")
    return text


def _remote(text: str) -> str:
    if text != PLATFORM and not _REMOTE.fullmatch(text):
        raise ValueError(
            "is no address of a Spark Connect server: write it like sc://host:15002, or platform"
        )  # may hold a token
    return text


class TargetConfig(BaseModel):
    """Where things are: a warehouse, how many cores work there, and in which mode.

    ``execution: record`` takes each record through Python by itself also where whole columns would do. ``source: shuffle``
    lets Spark read the logs, where its workers may not open their files (governed tables). The rows are the same.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)

    target: Name
    warehouse: Location
    storage_options: StorageOptions = Field(default={}, repr=False)
    """How a warehouse in a bucket is opened: what would else stand in the environment, under the same names."""
    cores: int | None = Field(default=None, ge=1, le=4096)
    """Spark tasks at once. None: as many as this machine has cores."""
    execution: Literal["auto", "record"] = "auto"
    source: Literal["auto", "shuffle"] = "auto"
    master: Annotated[str, AfterValidator(_master)] | None = None
    """The cluster that works. None: this process does."""
    connect: Annotated[str, AfterValidator(_remote)] | None = None
    """The Spark Connect server that works."""
    ships: list[Location] = []
    """Wheels and zips that the cluster or server imports from: paths or globs below the project's root."""
    spark: SparkSettings = {}
    inline: int | None = Field(default=None, ge=0)
    """Up to how many records a sub-topology is run by this process, without Spark: those that it takes and the rows that it
    restores; a tenth of them where whole columns are taken. None: `INLINE` where work and warehouse are here, else 0,
    which is never."""
    commit: Literal["direct", "spark"] = "direct"
    """``spark``: ledger, journal and outputs are tables of a catalog, which only Spark may write."""
    staging: Literal["files", "rows"] = "files"
    """``rows``: what tasks make goes to the journal as rows; they write no files of tables."""
    catalog: Annotated[str, AfterValidator(_home)] | None = None
    """``catalog.schema`` of rewindow's own tables, with ``commit: spark``."""

    @model_validator(mode="after")
    def _rows_go_through_spark(self) -> Self:
        through_spark = self.commit == "spark"
        if through_spark != (self.staging == "rows") or through_spark != bool(self.catalog):
            raise ValueError(
                "commit: spark, staging: rows and catalog: CATALOG.SCHEMA go together: give all three, or none"
            )
        return self

    @model_validator(mode="after")
    def _buckets_are_read_by_workers(self) -> Self:
        is_bucket = "://" in self.warehouse.removeprefix("file://")
        if is_bucket and self.source == "shuffle":
            raise ValueError(
                "source: shuffle lets Spark read the logs, which a warehouse in a bucket has not: use auto"
            )
        if is_bucket and self.catalog:
            raise ValueError("with commit: spark the catalog has all tables: name a folder as the warehouse")
        if self.storage_options and not is_bucket:
            raise ValueError("storage_options are for a warehouse in a bucket (s3://...): leave them out")
        return self

    @model_validator(mode="after")
    def _one_place_of_work(self) -> Self:
        if self.master and self.connect:
            raise ValueError("master and connect are two places of work: keep one")
        if self.is_elsewhere and self.cores is None:
            raise ValueError("nobody can ask how many cores work elsewhere: add cores: N, the tasks at once")
        if self.ships and not self.is_elsewhere:
            raise ValueError("ships is for a cluster or a server: add master or connect, or leave it out")
        return self

    @model_validator(mode="after")
    def _here_or_elsewhere(self) -> Self:
        if self.inline and (self.is_elsewhere or self.commit == "spark"):
            raise ValueError("inline is for a target whose work is done here, in files: leave it out, or say inline: 0")
        return self

    @property
    def most_inline(self) -> int:
        """How many records a sub-topology that this process runs by itself may have."""
        default = 0 if self.is_elsewhere or self.commit == "spark" or "://" in self.warehouse else INLINE
        return default if self.inline is None else self.inline

    @property
    def is_elsewhere(self) -> bool:
        """Whether the work is done by other processes than this one's."""
        return bool(self.master or self.connect)
