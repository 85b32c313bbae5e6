"""Wording of counts and commands in messages."""

from __future__ import annotations

from dataclasses import dataclass

from rewindow.control.plan.spec import MAIN


def counted(count: int, noun: str, *, many: str = "") -> str:
    """Return a count with its noun, such as ``1 run`` or ``2 runs``."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"


def waits(count: int, noun: str) -> str:
    """Return how many things wait, as in ``1 landing waits`` or ``2 landings wait``."""
    return f"{counted(count, noun)} {'waits' if count == 1 else 'wait'}"


def landing_numbers(first: int, last: int) -> str:
    """Return the numbers of landings, as in ``landing 1`` or ``landings 1 to 3``. A run may have none: then ``last`` is lower."""
    if first > last:
        return "no landing"
    return f"landing {first}" if first == last else f"landings {first} to {last}"


def command_words(job: str, branch: str) -> str:
    """Return the words of a command line that name a job and a branch."""
    return job if branch == MAIN else f"{job} --branch {branch}"


def see_quarantined(name: str) -> str:
    """Return the command that shows the rows of one job or feed in the quarantine table.

    All jobs and feeds share this table.
    """
    return f"rewindow head rewindow.quarantine --of {name}"


def keep_dropped(job: str) -> str:
    """Return advice on how to see the records that later runs of a job will drop."""
    setting = f"`dropped: quarantine` in conf/jobs/{job}.yaml"
    return f"To see such records after later runs: {setting}, and `{see_quarantined(job)}`"


@dataclass(frozen=True, slots=True)
class Command:
    """Makes command lines for one feed or job, with the options for the target and branch."""

    name: str
    target: str
    branch: str = MAIN

    def __call__(self, command: str) -> str:
        """Return a command line."""
        target = "" if self.target == "local" else f" --target {self.target}"
        return f"rewindow {command} {command_words(self.name, self.branch)}{target}"
