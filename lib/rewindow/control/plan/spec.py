"""A run as data: the request, the plan (PLAN row), and the result (COMMIT row) with its place in the chain of hashes.

Pure values. The ledger stores their JSON forms, which every later version of the code must be able to read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from rewindow.contracts.expectations import Observation, OnFail
from rewindow.contracts.staged_files import StagedFile, TaskReport
from rewindow.streams.serde.schema import Column
from rewindow.streams.timing import TimedNode

MAIN = "main"
"""The published branch, whose output tables have no suffix."""
BEGINNING = "0"
"""The name of the state before the first run."""
OUTPUT = "output/"
"""Prefix of targets that are output tables. Each branch has its own output tables. Branches share all other tables."""
CHANGELOG = "changelog/"
"""Prefix of targets that are changelogs."""
_SPAN = {
    "feed_ledger": "ledger",
    "generation": "generation",
    "first_epoch": "first",
    "last_epoch": "last",
    "clock_from_ms": "clock_from_ms",
    "clock_to_ms": "clock_to_ms",
}
"""Maps the name in a PLAN row to the field of `EpochSpan`. In the row, these names are next to the run's other fields."""
_LANDED_BY = "landed_by"
_SCALARS = ("branch", "number", "run", "parent", "final", "key", "takes_over", "repeats")
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table that a run writes. ``path`` is relative to the warehouse; ``columns`` include the partition columns."""

    path: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        columns = [list(column) for column in self.columns]
        return {"path": self.path, "columns": columns, "partition_by": list(self.partition_by)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableSpec:
        """Return the value of a JSON form."""
        return cls(data["path"], tuple(Column(*column) for column in data["columns"]), tuple(data["partition_by"]))


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request for a run, by default over all epochs of the feed.

    * ``through_landing``: stop after this landing. ``through_ms``: stop after the last landing whose watermark is at most this
      time. ``until_ms``: stop after the last landing whose interval of arrival ended by this time.
    * ``at_most``: process at most this many landings in one run. Later runs process the rest.
    * ``final``: close every window and seal the branch (D18).
    * ``replan`` discards the plan of an attempt that did not finish. ``take_over`` fences an attempt that is still alive.
    * ``key`` identifies the request, such as a scheduler's interval. Once a run with this key is committed, there is nothing to
      do.
    * ``drop_buffered`` discards the records that a removed suppress has buffered.
    * ``accept_changes`` resumes from a checkpoint of different code if its stores are compatible. ``accept_code`` does so if
      only functions and classes changed.
    """

    branch: str = MAIN
    through_landing: int | None = None
    through_ms: int | None = None
    until_ms: int | None = None
    at_most: int | None = None
    final: bool = False
    replan: bool = False
    take_over: bool = False
    key: str | None = None
    drop_buffered: bool = False
    accept_changes: bool = False
    accept_code: bool = False

    @property
    def is_bounded_by_time(self) -> bool:
        """Whether a time limits the request. Then there may be nothing to run."""
        return self.through_ms is not None or self.until_ms is not None


@dataclass(frozen=True)
class JobBinding:
    """A job's current code and settings, bound to the feed's columns and to the tables of a branch.

    ``topology`` is `Topology.describe`. ``code`` is the version of the functions and classes in its nodes
    (`control.code_version`), empty if unknown. ``stores`` maps each store to the columns of its changelog. ``keys`` maps each
    store, and each output by its target, to the names of its key columns. ``tables`` maps each target (`StagedFile.target`) to
    its table, without internal logs.
    """

    job: str
    feed: str
    fingerprint: str
    topology: Sequence[Mapping[str, Any]]
    semantics: Mapping[str, Any]
    stores: Mapping[str, tuple[Column, ...]]
    tables: Mapping[str, TableSpec]
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    timed: tuple[TimedNode, ...] | None = None
    """The nodes that wait for clocks; None in a plan of an older version of rewindow.

    They follow from the code, so they are not compared as changes of a job and are no part of a chain hash. Therefore older
    versions can read plans of this version.
    """
    zones: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The clocks of the time zones that the job's windows name, by zone (`zone_clocks`)."""

    @cached_property
    def json(self) -> dict[str, Any]:
        """The JSON form, without the names of job and feed and without ``timed``.

        The runs of a ledger share this value, so it is computed once and must not be changed.
        """
        return {
            "fingerprint": self.fingerprint,
            "topology": [dict(part) for part in self.topology],
            "semantics": dict(self.semantics),
            "stores": {name: [list(c) for c in columns] for name, columns in self.stores.items()},
            "keys": {name: list(keys) for name, keys in self.keys.items()},
            "tables": {target: table.as_json() for target, table in self.tables.items()},
            "code": dict(self.code),
            # Omitted if empty, because the chain hashes of older rows were computed without this name.
            **({"zones": {zone: dict(clock) for zone, clock in self.zones.items()}} if self.zones else {}),
        }

    @cached_property
    def timed_json(self) -> dict[str, Any]:
        """The JSON form of ``timed``, which a plan contains in addition to `json`; empty if ``timed`` is None."""
        return {} if self.timed is None else {"timed": [node.as_json() for node in self.timed]}

    @cached_property
    def text(self) -> str:
        """The canonical JSON text of `json`."""
        return canonical_json(self.json)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> JobBinding:
        """Return the binding of a plan's JSON form."""
        bound = data["binding"]
        return cls(
            job=data["job"],
            feed=data["feed"],
            fingerprint=bound["fingerprint"],
            topology=bound["topology"],
            semantics=bound["semantics"],
            stores={name: tuple(Column(*c) for c in columns) for name, columns in bound["stores"].items()},
            tables={target: TableSpec.from_json(table) for target, table in bound["tables"].items()},
            keys={name: tuple(keys) for name, keys in bound["keys"].items()},
            code=bound["code"],
            timed=tuple(map(TimedNode.from_json, data["timed"])) if "timed" in data else None,
            zones=bound.get("zones", {}),
        )

    def is_of(self, data: Mapping[str, Any]) -> bool:
        """Return whether ``data``, the JSON form of a plan, contains this binding."""
        timed = {name: value for name, value in data.items() if name == "timed"}
        return (self.job, self.feed, self.json, self.timed_json) == (data["job"], data["feed"], data["binding"], timed)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt: a unique id, its process (``pid_started`` in epoch ms), and the versions of its libraries."""

    id: str
    host: str = ""
    pid: int = 0
    pid_started: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        own = {"id": self.id, "host": self.host, "pid": self.pid, "pid_started": self.pid_started}
        return {**own, "versions": dict(self.versions)}


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """The part of a feed that a run processes: epochs ``first`` to ``last`` of a ``generation``; none if ``last = first - 1``.

    ``ledger`` is the identity of the landing ledger that numbered the epochs. ``clock_from_ms`` is the watermark of the epoch
    before the first, ``clock_to_ms`` the watermark of the last epoch (D8, ``run``). ``landed_by`` is the attempt that landed
    the last epoch; empty in plans of older versions. It is needed because, after an older copy of a ledger was restored, new
    landings get numbers that other landings had.
    """

    ledger: str
    generation: int
    first: int
    last: int
    clock_from_ms: int
    clock_to_ms: int
    landed_by: str = ""

    @property
    def epochs(self) -> range:
        """The numbers of the epochs, in order."""
        return range(self.first, self.last + 1)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form, which is a part of the plan's JSON form."""
        # Omitted if unknown, because the chain hashes of older rows were computed without this name.
        landed_by = {_LANDED_BY: self.landed_by} if self.landed_by else {}
        return {name: getattr(self, field) for name, field in _SPAN.items()} | landed_by

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EpochSpan:
        """Return the value of a plan's JSON form."""
        return cls(**{field: data[name] for name, field in _SPAN.items()}, landed_by=data.get(_LANDED_BY, ""))


@dataclass(frozen=True, slots=True)
class RunSpec:
    """The plan of a run: the body of its PLAN row, and everything that the run may depend on.

    * ``run`` is the number of the PLAN row, ``parent`` the number of the run from whose checkpoint this run resumes.
    * ``input`` names the run's epochs; only a ``final`` run may have none.
    * ``accepted`` lists the accepted changes since the parent's checkpoint.
    * ``takes_over`` is the number of the unfinished run that this run completes. ``repeats`` is the attempt that planned the
      unfinished run, if its code was the same. In that case, both attempts must produce the same rows.
    """

    branch: str
    number: int
    run: int
    parent: int | None
    input: EpochSpan
    final: bool
    binding: JobBinding
    attempt: Attempt
    key: str | None = None
    takes_over: int | None = None
    repeats: str | None = None
    accepted: tuple[str, ...] = ()

    @property
    def job(self) -> str:
        """The job's name."""
        return self.binding.job

    @property
    def name(self) -> str:
        """The run's name: ``branch/number``."""
        return f"{self.branch}/{self.number}"

    @property
    def epochs(self) -> range:
        """The numbers of its epochs, in order."""
        return self.input.epochs

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        scalars = {name: getattr(self, name) for name in _SCALARS}
        # Omitted if empty, because the chain hashes of older rows were computed without this name.
        accepted = {"accepted": list(self.accepted)} if self.accepted else {}
        feed = {"job": self.job, "feed": self.binding.feed, **self.input.as_json()}
        binding = {"binding": self.binding.json, **self.binding.timed_json}
        return {**feed, **scalars, **accepted, **binding, "attempt": self.attempt.as_json()}

    def canonical_json(self) -> str:
        """Return the canonical JSON text of what decides the run's rows: `as_json` without ``timed``."""
        form = {name: value for name, value in self.as_json().items() if name != "timed"}
        # The binding's text is computed once for all runs that share the binding.
        before = canonical_json({name: value for name, value in form.items() if name < "binding"})
        after = canonical_json({name: value for name, value in form.items() if name > "binding"})
        return f'{before[:-1]},"binding":{self.binding.text},{after[1:]}'

    @classmethod
    def from_json(cls, data: Mapping[str, Any], before: RunSpec | None = None) -> RunSpec:
        """Return the value of a JSON form."""
        # Equal bindings of consecutive runs are one object, because a year has thousands of runs.
        binding = before.binding if before is not None and before.binding.is_of(data) else JobBinding.from_json(data)
        scalars = {name: data[name] for name in _SCALARS}
        accepted = tuple(data.get("accepted", ()))
        attempt, span = Attempt(**data["attempt"]), EpochSpan.from_json(data)
        return cls(**scalars, input=span, binding=binding, attempt=attempt, accepted=accepted)


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of a value: sorted keys, no blanks, no NaN."""
    return _CANONICAL.encode(value)


@dataclass(frozen=True, slots=True)
class TargetTotal:
    """What a run wrote to one target: rows, files, bytes, and a digest of the rows, the same for any split into files."""

    rows: int
    files: int
    bytes: int
    digest: str


def totals(reports: Sequence[TaskReport]) -> dict[str, TargetTotal]:
    """Return for each target how many rows, files and bytes were staged, and the digest of all its rows."""
    files: dict[str, list[StagedFile]] = {}
    for report in reports:
        for file in report.files:
            files.setdefault(file.target, []).append(file)
    return {
        target: TargetTotal(
            rows=sum(file.rows for file in made),
            files=len(made),
            bytes=sum(file.bytes for file in made),
            digest=add_digests(file.rows_digest for file in made),
        )
        for target, made in sorted(files.items())
    }


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The journal file with an attempt's reports: its path below the journal table, size, and byte digest."""

    path: str
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The body of a COMMIT row. It makes the files of one attempt the only files of the run.

    ``watermark_ms`` is the watermark of the last epoch. ``consumed`` is the number of records read per topic, ``held`` the
    number of records in each suppress buffer at the end. ``chain`` binds the run to all earlier runs (`chain_hash`).
    ``expectations`` are the results of the expectations in the job's file. If ``holds``, the run is published only when
    somebody accepts it. ``zone_ends`` has, for each time zone of the job's windows, the latest end of a window in the stores.
    """

    run: int
    attempt: str
    journal: JournalFile
    targets: Mapping[str, TargetTotal]
    consumed: Mapping[str, int]
    watermark_ms: int
    chain: str
    held: Mapping[str, int] = field(default_factory=dict)
    expectations: tuple[Observation, ...] = ()
    zone_ends: Mapping[str, int] = field(default_factory=dict)

    @property
    def unmet(self) -> tuple[Observation, ...]:
        """The expectations that the run does not meet."""
        return tuple(observation for observation in self.expectations if not observation.is_met)

    @property
    def held_by(self) -> tuple[Observation, ...]:
        """The unmet expectations that put the run on hold."""
        return tuple(observation for observation in self.unmet if observation.on_fail == OnFail.HOLD)

    @property
    def holds(self) -> bool:
        """Whether the run is published only when somebody accepts it."""
        return bool(self.held_by)

    @property
    def changelog_rows(self) -> int:
        """How many rows the run added to changelogs."""
        return sum(total.rows for target, total in self.targets.items() if target.startswith(CHANGELOG))

    def rows_in(self, target: str) -> int:
        """Return how many rows the run added to a target."""
        total = self.targets.get(target)
        return total.rows if total else 0

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        whole = asdict(self)
        # Omitted if empty, so that the row equals the row of a version without expectations and zones.
        del whole["expectations"]
        if not self.zone_ends:
            del whole["zone_ends"]
        results = [observation.as_json() for observation in self.expectations]
        return whole | ({"expectations": results} if results else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Commit:
        """Return the value of a JSON form."""
        targets = {target: TargetTotal(**total) for target, total in data["targets"].items()}
        observed = tuple(Observation.from_json(observation) for observation in data.get("expectations", ()))
        journal = JournalFile(**data["journal"])
        return cls(**{**data, "journal": journal, "targets": targets, "expectations": observed})


def make_commit(
    spec: RunSpec,
    *,
    parent_chain: str,
    journal: JournalFile,
    targets: Mapping[str, TargetTotal],
    consumed: Mapping[str, int],
    held: Mapping[str, int] | None = None,
) -> Commit:
    """Return the COMMIT of a planned run, chained to its parent (``""`` for the first run of a branch)."""
    chain = chain_hash(parent_chain, spec, targets)
    return Commit(
        spec.run,
        spec.attempt.id,
        journal,
        dict(targets),
        dict(consumed),
        spec.input.clock_to_ms,
        chain,
        dict(held or {}),
    )


def chain_hash(parent_chain: str, spec: RunSpec, targets: Mapping[str, TargetTotal]) -> str:
    """Return the SHA-256 over the parent's chain hash, the plan and the digests. One altered row changes all later hashes."""
    digests = {target: [total.rows, total.digest] for target, total in targets.items()}
    text = "\n".join((parent_chain, spec.canonical_json(), canonical_json(digests)))
    return hashlib.sha256(text.encode()).hexdigest()


def add_digests(digests: Iterable[str]) -> str:
    """Return the combined digest of the rows of several files, given the `StagedFile.rows_digest` of each."""
    halves = [0, 0]
    for digest in digests:
        halves = [
            (half + int(digest[start : start + 16], 16)) % 2**64 for half, start in zip(halves, (0, 16), strict=True)
        ]
    return "".join(f"{half:016x}" for half in halves)


def version_of(code: Mapping[str, str]) -> str:
    """Return a code version as eight hexadecimal digits; ``""`` for a job without code of its own."""
    text = "\n".join(f"{name} {known}" for name, known in sorted(code.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:8] if code else ""


def run_version(binding: JobBinding) -> str:
    """Return the version of a run's code and topology together, as eight hexadecimal digits."""
    return version_of({"the topology": binding.fingerprint, **binding.code})
