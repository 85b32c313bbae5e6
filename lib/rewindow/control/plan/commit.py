"""The result of a run as data: the COMMIT row with its totals and its place in the chain of hashes. Pure values.

The ledger stores the JSON form, which every later version of the code must be able to read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rewindow.contracts.expectations import Observation, OnFail
from rewindow.control.plan.spec import RunSpec, canonical_json


@dataclass(frozen=True, slots=True)
class TargetTotal:
    """What a run wrote to one target: rows, files, bytes, and a digest of the rows that does not depend on the files."""

    rows: int
    files: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The journal file with an attempt's reports: its path below the journal table, size, and byte digest."""

    path: str
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The body of a COMMIT row, which makes an attempt's files the only files of the run.

    ``watermark_ms`` is that of the last epoch, ``consumed`` the number of records read per topic, ``held`` the number of
    records in each suppress buffer at the end. ``chain`` binds the run to all earlier ones (`chain_hash`). ``expectations``
    are the results of what the job's file expects of the outputs; a run that ``holds`` is published when it is accepted.
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

    @property
    def unmet(self) -> tuple[Observation, ...]:
        """The expectations that the run does not meet."""
        return tuple(one for one in self.expectations if not one.is_met)

    @property
    def held_by(self) -> tuple[Observation, ...]:
        """The expectations for which the run is not to be published before it is accepted."""
        return tuple(one for one in self.unmet if one.on_fail == OnFail.HOLD)

    @property
    def holds(self) -> bool:
        """Whether the run is not to be published before it is accepted."""
        return bool(self.held_by)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form. A job without expectations has the same as before there were any."""
        whole = asdict(self)
        del whole["expectations"]
        results = [one.as_json() for one in self.expectations]
        return whole | ({"expectations": results} if results else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Commit:
        """Return the value of a JSON form."""
        targets = {target: TargetTotal(**total) for target, total in data["targets"].items()}
        observed = tuple(Observation.from_json(one) for one in data.get("expectations", ()))
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
    """Return the SHA-256 over the parent's chain, the plan and the digests. One altered row breaks all later hashes."""
    digests = {target: [total.rows, total.digest] for target, total in targets.items()}
    text = "\n".join((parent_chain, spec.canonical_json(), canonical_json(digests)))
    return hashlib.sha256(text.encode()).hexdigest()


def add_digests(digests: Iterable[str]) -> str:
    """Return the combined digest of several files' rows, given each file's `StagedFile.rows_digest`."""
    halves = [0, 0]
    for digest in digests:
        halves = [(half + int(digest[at : at + 16], 16)) % 2**64 for half, at in zip(halves, (0, 16), strict=True)]
    return "".join(f"{half:016x}" for half in halves)
