"""Expectations of an output: what a job's file expects of the new rows of each run, and the results.

These values connect the job's file with the table adapters. `config` makes the `Expectation`, an evaluator checks the rows, and
the COMMIT row stores the `Observation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from rewindow.streams.serde.schema import Column

EXPECTATIONS = "expectations"
"""The target to which the results of expectations are written."""

EXPECTATION_COLUMNS = (
    *(Column(name, "string") for name in ("job", "branch")),
    Column("_run", "long"),
    *(Column(name, "string") for name in ("output", "name", "kind", "on_fail")),
    Column("is_met", "boolean"),
    Column("failed", "long"),
    *(Column(name, "string") for name in ("observed", "expected", "examples")),
)
"""The columns of the expectations table, which has one row per run and expectation. ``examples`` has one offending row per
line."""

NEW_ROWS, PREVIOUS_ROWS = "new_rows", "previous_rows"
"""The tables that a query reads: the rows of this run, and the rows of the previous run."""

QUERY_TIMEOUT_MS = 300_000
"""How long the query of an expectation may take unless the job's file states another `timeout`."""

MOST_EXAMPLES = 3
"""Number of offending rows that an observation names."""


class Kind(StrEnum):
    """The kind of check that an expectation makes."""

    NOT_NULL = "not_null"
    UNIQUE = "unique"
    RANGE = "range"
    VALUES = "values"
    ROWS = "rows"
    LATE = "late"
    SQL = "sql"


class OnFail(StrEnum):
    """What happens to a run that does not meet an expectation."""

    WARN = "warn"
    """The run is committed and published. Its result names the expectation."""
    HOLD = "hold"
    """The run is committed, but published only when somebody accepts it."""
    FAIL = "fail"
    """The run is not committed."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation of an output (a topic).

    ``columns``: the columns that must not be null or must be unique together, or the one column whose values are limited.
    ``minimum`` and ``maximum`` are inclusive limits of values, of the number of rows or of a share; None for no limit.
    ``query`` returns the offending rows and may take ``timeout_ms``.
    """

    output: str
    name: str
    kind: Kind
    on_fail: OnFail
    columns: tuple[str, ...] = ()
    minimum: Any = None
    maximum: Any = None
    allowed: tuple[Any, ...] = ()
    query: str = ""
    timeout_ms: int = QUERY_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one expectation in a run. It is a part of the run's COMMIT row.

    ``failed`` is the number of offending rows; for a number of rows or a share outside of its limits, it is 1. ``observed`` and
    ``expected`` are texts for people. ``examples`` are the first offending rows as text, with their keys.
    """

    output: str
    name: str
    kind: str
    on_fail: str
    failed: int
    observed: str
    expected: str
    examples: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether the run meets the expectation."""
        return not self.failed

    @property
    def sentence(self) -> str:
        """The result as a sentence without a full stop: output, expectation, observed value, bound, first row."""
        first = f"; first: {self.examples[0]}" if self.examples else ""
        return f"{self.output}: {self.name}: {self.observed}, expected {self.expected}{first}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form, which is a part of the COMMIT row's JSON form."""
        return asdict(self) | {"examples": list(self.examples)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Observation:
        """Return the value of a JSON form."""
        return cls(**{**data, "examples": tuple(data["examples"])})
