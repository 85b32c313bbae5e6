"""A run as data: what is asked for, what was decided (the PLAN row), and what came of it (the COMMIT row). Pure values.

Each has a JSON form, which is what the ledger keeps: made by one version of the code, it is read by all later ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rewindow.streams.serde.schema import Column

MAIN = "main"
"""The branch whose output tables bear their plain names."""

OUTPUT = "output/"
"""How the targets of output tables begin: each branch has its own. All other tables are shared."""

CHANGELOG = "changelog/"
"""How the targets of changelogs begin."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table that a run writes. ``path`` is relative to the warehouse; ``columns`` include the partition columns."""

    path: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        columns = [list(column) for column in self.columns]
        return {"path": self.path, "columns": columns, "partition_by": list(self.partition_by)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableSpec:
        """Rebuild what `as_json` made."""
        return cls(data["path"], tuple(Column(*column) for column in data["columns"]), tuple(data["partition_by"]))


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What somebody asks for. Without ``through_landing``, ``through_ms`` and ``until_ms``: all epochs that the feed has.

    ``through_ms``: up to the last landing whose watermark is not above it; ``until_ms``: whose interval of arrival ended
    by then. ``final``: nothing comes after (D18).
    ``replan`` forgets the plan of an attempt that died; ``take_over`` fences one that still lives. ``key`` names the
    request (a scheduler's interval): asked again after its run is committed, there is nothing to do. ``drop_buffered``
    lets go of what a suppress holds that was taken out. ``accept_changes`` goes on with other code than the checkpoint's
    where its stores allow it, ``accept_code`` if only functions and classes changed (`on_code_change: accept`).
    """

    branch: str = MAIN
    through_landing: int | None = None
    through_ms: int | None = None
    until_ms: int | None = None
    final: bool = False
    replan: bool = False
    take_over: bool = False
    key: str | None = None
    drop_buffered: bool = False
    accept_changes: bool = False
    accept_code: bool = False

    @property
    def is_bounded_by_time(self) -> bool:
        """Whether it asks for what there was at some time, which may be nothing."""
        return self.through_ms is not None or self.until_ms is not None


@dataclass(frozen=True, slots=True)
class JobBinding:
    """A job as it is now: code and settings bound to the feed's columns, and the tables of the asked branch.

    ``topology`` is `Topology.describe`, ``code`` the version of the functions and classes in its nodes (`code_version`),
    empty where it is not known; ``stores`` has for each store the columns of its changelog. ``tables`` has for
    each target (`StagedFile.target`; not the internal logs) its table, ``keys`` for each store its key columns' names.
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


@dataclass(frozen=True, slots=True)
class Attempt:
    """Who does it: a name never used before, the process (``pid_started``: epoch ms), and the versions it runs on."""

    id: str
    host: str = ""
    pid: int = 0
    pid_started: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run is, decided before it starts: the body of its PLAN row, and all that it may depend on.

    ``run`` is the number of its PLAN row, ``parent`` that of the run whose checkpoint it goes on from. Epochs
    ``first_epoch`` .. ``last_epoch`` of the feed's ``generation``; none (``last_epoch = first_epoch - 1``) only if
    ``final``. ``clock_from_ms`` and ``clock_to_ms``: the parent's last watermark and this run's last (D8, ``run``).
    ``accepted``: how the job differs from what made the parent's checkpoint, where somebody accepted that.
    ``takes_over``: the run of the dead attempt whose epochs and clock these are; ``repeats``: that attempt, if it was of
    the same code, so that what it staged must come again.
    """

    job: str
    branch: str
    number: int
    run: int
    parent: int | None
    feed: str
    generation: int
    first_epoch: int
    last_epoch: int
    final: bool
    clock_from_ms: int
    clock_to_ms: int
    binding: JobBinding
    attempt: Attempt
    key: str | None = None
    takes_over: int | None = None
    repeats: str | None = None
    accepted: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The run's name for people: ``branch/number``."""
        return f"{self.branch}/{self.number}"

    @property
    def epochs(self) -> range:
        """The epochs' numbers, in order."""
        return range(self.first_epoch, self.last_epoch + 1)

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        binding = {
            "fingerprint": self.binding.fingerprint,
            "topology": [dict(part) for part in self.binding.topology],
            "semantics": dict(self.binding.semantics),
            "stores": {name: [list(c) for c in columns] for name, columns in self.binding.stores.items()},
            "keys": {name: list(keys) for name, keys in self.binding.keys.items()},
            "tables": {target: table.as_json() for target, table in self.binding.tables.items()},
            "code": dict(self.binding.code),
        }
        plain = {name: getattr(self, name) for name in _PLAIN}
        # Left out where there is none: the chain hash of older rows was made without it.
        more = {"accepted": list(self.accepted)} if self.accepted else {}
        return {**plain, **more, "binding": binding, "attempt": asdict(self.attempt)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Rebuild what `as_json` made."""
        bound = data["binding"]
        binding = JobBinding(
            job=data["job"],
            feed=data["feed"],
            fingerprint=bound["fingerprint"],
            topology=bound["topology"],
            semantics=bound["semantics"],
            stores={name: tuple(Column(*c) for c in columns) for name, columns in bound["stores"].items()},
            tables={target: TableSpec.from_json(table) for target, table in bound["tables"].items()},
            keys={name: tuple(keys) for name, keys in bound["keys"].items()},
            code=bound["code"],
        )
        plain = {name: data[name] for name in _PLAIN}
        accepted = tuple(data.get("accepted", ()))
        return cls(**plain, binding=binding, attempt=Attempt(**data["attempt"]), accepted=accepted)


_PLAIN = (
    *("job", "branch", "number", "run", "parent", "feed", "generation", "first_epoch", "last_epoch", "final"),
    *("clock_from_ms", "clock_to_ms", "key", "takes_over", "repeats"),
)


@dataclass(frozen=True, slots=True)
class TargetTotal:
    """What a run made for one target: rows, files, bytes, and the digest of the rows however they are cut."""

    rows: int
    files: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The one file of the journal that holds an attempt's reports: path below the journal table, size, byte digest."""

    path: str
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The body of a COMMIT row: this attempt's files are the run's, and nobody else's ever will be.

    ``watermark_ms`` is that of the last epoch, ``consumed`` the records taken of each topic, ``held`` those that
    each buffer holds back at its end. ``chain`` binds the run to
    all before it: see `chain_hash`.
    """

    run: int
    attempt: str
    journal: JournalFile
    targets: Mapping[str, TargetTotal]
    consumed: Mapping[str, int]
    watermark_ms: int
    chain: str
    held: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return a dictionary that `json` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Commit:
        """Rebuild what `as_json` made."""
        targets = {target: TargetTotal(**total) for target, total in data["targets"].items()}
        return cls(**{**data, "journal": JournalFile(**data["journal"]), "targets": targets})


def make_commit(
    spec: RunSpec,
    *,
    parent_chain: str,
    journal: JournalFile,
    targets: Mapping[str, TargetTotal],
    consumed: Mapping[str, int],
    held: Mapping[str, int] | None = None,
) -> Commit:
    """Return the COMMIT of a planned run, chained to its parent (``""`` for a branch's first)."""
    chain = chain_hash(parent_chain, spec, targets)
    return Commit(
        spec.run, spec.attempt.id, journal, dict(targets), dict(consumed), spec.clock_to_ms, chain, dict(held or {})
    )


def chain_hash(parent_chain: str, spec: RunSpec, targets: Mapping[str, TargetTotal]) -> str:
    """Return the SHA-256 over the parent's chain, the plan and the digests: one altered row breaks all after it."""
    digests = {target: [total.rows, total.digest] for target, total in targets.items()}
    text = "\n".join((parent_chain, canonical_json(spec.as_json()), canonical_json(digests)))
    return hashlib.sha256(text.encode()).hexdigest()


def add_digests(digests: Iterable[str]) -> str:
    """Return the digest of the rows of several files together, from each file's `StagedFile.rows_digest`."""
    halves = [0, 0]
    for digest in digests:
        halves = [(half + int(digest[at : at + 16], 16)) % 2**64 for half, at in zip(halves, (0, 16), strict=True)]
    return "".join(f"{half:016x}" for half in halves)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of plain data: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
