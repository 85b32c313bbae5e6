"""What `rewindow status` says about one feed or job: figures, and findings with the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rewindow.app.listing import Entry
from rewindow.errors import ConfigError, RewindowError, one_line


class Level(StrEnum):
    """How urgent something is, the most urgent first."""

    BROKEN = "broken"
    """The next command would refuse, an attempt did not finish, a run is on hold, tables are not what was committed, or a check
    failed."""
    ALERT = "alert"
    """A bound of the job's file is exceeded, or its schedule or the feed's interval was missed."""
    NOTE = "note"
    """Results wait for a silent partition, and no bound is exceeded; all of a landing was quarantined; or rows of landed files
    arrive in the future. If a catalog has the tables: an attempt may still run on another host, or a bound of files is not
    checked."""
    OK = "ok"

    @property
    def is_well(self) -> bool:
        """Whether no action is needed."""
        return self in (Level.NOTE, Level.OK)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that someone should look at. ``about`` is the word that alert rules select by.

    ``command`` helps. It is None where it would be refused: what another finding says comes first.
    """

    level: Level
    about: str
    message: str
    command: str | None
    advice: str | None = None
    """What else may be needed, as a sentence."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A feed or a job: its line of `rewindow ls`, its figures by name (None if unknown), and what was found."""

    kind: str
    name: str
    entry: Entry
    figures: Mapping[str, Any]
    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def level(self) -> Level:
        """The level of the most urgent finding."""
        return min((one.level for one in self.findings), key=list(Level).index, default=Level.OK)


def refused(entry: Entry, what: str, command: str) -> Finding:
    """Return the finding that the next run or landing (``what``) is refused.

    A mistake in a file has no command: until the file is corrected, each command says the same.
    """
    message = f"the next {what} is refused ({entry.exit_code}): {entry.detail}"
    helps = None if entry.exit_code == ConfigError.exit_code else command
    return Finding(Level.BROKEN, "refused", message, helps)


def attempted(check: Callable[[], Sequence[Finding]], about: str, command: str) -> Sequence[Finding]:
    """Return what a check finds. A check that cannot be made is a finding itself, because it says nothing good."""
    try:
        return check()
    except RewindowError as error:
        return [Finding(Level.BROKEN, about, f"this could not be checked: {error}", command)]
    except Exception as error:  # noqa: BLE001 - the other feeds and jobs are checked anyway
        message = f"this could not be checked: {type(error).__name__}: {one_line(error)}"
        return [Finding(Level.BROKEN, about, message, command)]
