"""The configuration of a target: where tables are stored, and where work is executed. It never changes a row."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rewindow.config.field_types import Bytes, DurationMs, Location, MisfitError, Name, SparkSettings, StorageOptions

_MASTER = re.compile(r"(spark|k8s)://\S+|yarn")
_HOME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.[A-Za-z0-9_][A-Za-z0-9_-]*")
_REMOTE = re.compile(r"sc://[^\s/:]+(:\d+)?(/\S*)?")

INLINE = 100_000
"""With fewer records than this, Spark or a second core cost more time than they save (ADR-68)."""
_MINUTE_MS = 60_000
_LANDED_SHARE = 10
"""The number of rows that `land` lands in the time in which record execution processes one record."""

PLATFORM = "platform"
"""The value of ``connect`` for the Spark session that a platform such as Databricks provides to its jobs."""


def _master(text: str) -> str:
    if not _MASTER.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a cluster: write spark://host:7077, yarn or k8s://..., or remove it to run locally"
        )
    return text


def _home(text: str) -> str:
    if not _HOME.fullmatch(text):
        raise ValueError(f"{text!r} is not a schema of a catalog: write it like main.rewindow")
    return text


def _stalled(length_ms: int) -> int:
    if length_ms < _MINUTE_MS:
        raise ValueError("is shorter than 1m: a healthy command may take longer from one batch of records to the next")
    return length_ms


def _remote(text: str) -> str:
    if text != PLATFORM and not _REMOTE.fullmatch(text):
        # The message does not show the address, because it may contain a token.
        raise ValueError("is not the address of a Spark Connect server: write it like sc://host:15002, or platform")
    return text


class TargetConfig(BaseModel):
    """A warehouse, the engine that works on it, and how the engine executes.

    ``execution: record`` disables vectorized execution. With ``execution: vectorized``, a sub-topology that cannot be
    vectorized is refused. With ``source: shuffle``, Spark reads the logs, for workers that may not open the files of tables.
    Neither setting changes a row.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)

    target: Name
    """The name of the target, equal to the file's name."""
    warehouse: Location
    """Where all tables are: a folder (relative to the project's root) or a URI such as ``s3://bucket/warehouse``."""
    storage_options: StorageOptions = Field(default={}, repr=False)
    """Settings to open a warehouse in a bucket. They override environment variables of the same name."""
    cores: int | None = Field(default=None, ge=1, le=4096)
    """Number of concurrent Spark tasks. Default: the number of this machine's cores."""
    execution: Literal["auto", "record", "vectorized"] = "auto"
    """``record`` disables vectorized execution. With ``vectorized``, a sub-topology that cannot be vectorized is refused.
    The rows are the same."""
    source: Literal["auto", "shuffle"] = "auto"
    """``shuffle``: Spark reads the logs. Use it if Spark's workers may not open the files of tables."""
    master: Annotated[str, AfterValidator(_master)] | None = None
    """The Spark cluster, like ``spark://host:7077`` or ``yarn``. Default: Spark runs locally."""
    connect: Annotated[str, AfterValidator(_remote)] | None = None
    """The Spark Connect server, like ``sc://host:15002``, or ``platform``."""
    ships: list[Location] = []
    """Wheels and zips to send to the cluster or server: paths or globs below the project's root."""
    spark: SparkSettings = {}
    """Settings of the Spark session, by name."""
    inline: int | None = Field(default=None, ge=0)
    """The largest sub-topology that this process executes without Spark: number of records to read plus rows to restore. In
    vectorized execution, ten records count as one. Default: 100,000 if both engine and warehouse are local, or with
    ``commit: spark``; otherwise 0 (never)."""
    store_memory: Bytes | None = Field(default=None, ge=1 << 20)
    """The upper limit of a job's ``store_memory`` on this target, in bytes or like ``384MiB``. Set it if workers have little
    memory."""
    keep_ms: DurationMs = Field(default=30 * 86_400_000, alias="keep", json_schema_extra={"default": "30d"})
    """How long files are kept after their table stopped using them: by the clean-up after every 24th run, and by `gc`
    without ``--keep``."""
    stalled_ms: Annotated[DurationMs, AfterValidator(_stalled)] = Field(
        default=1_800_000, alias="stalled_after", json_schema_extra={"default": "30m"}
    )
    """How long a landing or run may make no progress before another command takes over. These count as progress: a finished
    step, a finished task, and a batch of records that a task has read."""
    commit: Literal["direct", "spark"] = "direct"
    """``spark``: ledger, journal and outputs are tables of a catalog, which only Spark may write."""
    staging: Literal["files", "rows"] = "files"
    """``rows``: tasks write their output to the journal as rows and write no table files."""
    catalog: Annotated[str, AfterValidator(_home)] | None = None
    """``CATALOG.SCHEMA`` of rewindow's own tables. Needs ``commit: spark`` and ``staging: rows``."""

    @model_validator(mode="after")
    def _rows_go_through_spark(self) -> Self:
        through_spark = self.commit == "spark"
        if through_spark != (self.staging == "rows") or through_spark != bool(self.catalog):
            given = next(key for key in ("commit", "staging", "catalog") if key in self.model_fields_set)
            message = "commit: spark, staging: rows and catalog: CATALOG.SCHEMA go together: set all three or none"
            raise MisfitError(message, given)
        return self

    @model_validator(mode="after")
    def _buckets_are_read_by_workers(self) -> Self:
        is_bucket = "://" in self.warehouse.removeprefix("file://")
        if is_bucket and self.source == "shuffle":
            raise MisfitError(
                "source: shuffle lets Spark read the logs, but Spark has no access to a warehouse in a bucket: use auto",
                "source",
            )
        if is_bucket and self.catalog:
            message = "with commit: spark the catalog stores all tables: use a folder as the warehouse"
            raise MisfitError(message, "warehouse")
        if self.storage_options and not is_bucket:
            message = "storage_options apply only to a warehouse in a bucket (s3://...): remove them"
            raise MisfitError(message, "storage_options")
        return self

    @model_validator(mode="after")
    def _one_engine(self) -> Self:
        if self.master and self.connect:
            raise MisfitError("master and connect exclude each other: keep one", "connect")
        if self.is_remote and self.cores is None:
            message = "the number of remote cores is unknown: add cores: N, the number of concurrent tasks"
            raise MisfitError(message, "master" if self.master else "connect")
        if self.ships and not self.is_remote:
            message = "ships applies only to a cluster or server: add master or connect, or remove it"
            raise MisfitError(message, "ships")
        return self

    @model_validator(mode="after")
    def _inline_is_local(self) -> Self:
        if self.inline and self.is_remote and self.commit != "spark":
            message = "inline applies only to local execution, and with commit: spark: remove it, or set inline: 0"
            raise MisfitError(message, "inline")
        return self

    @property
    def most_inline(self) -> int:
        """Maximum number of records of a sub-topology that this process executes without Spark."""
        is_elsewhere = self.is_remote or "://" in self.warehouse
        default = 0 if is_elsewhere and self.commit != "spark" else INLINE
        return default if self.inline is None else self.inline

    @property
    def most_landed_here(self) -> int:
        """Maximum number of rows of a source that this process lands without Spark, even into a bucket."""
        default = 0 if self.is_remote and self.commit != "spark" else INLINE
        return _LANDED_SHARE * (default if self.inline is None else self.inline)

    @property
    def is_remote(self) -> bool:
        """Whether a cluster or server does the work."""
        return bool(self.master or self.connect)
