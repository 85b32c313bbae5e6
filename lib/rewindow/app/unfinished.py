"""What became of an attempt that planned a run and did not commit it: the same words for every command.

The ledger does not say how an attempt ended. Its heartbeat does: a process that ends by itself removes it, whatever its error,
and one that was killed leaves it.
"""

from __future__ import annotations

import socket

from rewindow.control.heartbeat import was_killed
from rewindow.control.plan.spec import Attempt, RunSpec

MEMORY_ADVICE = (
    "If that was for lack of memory (exit code 137), set fewer `cores:` or a smaller `inline:` in the target or a lower "
    "`store_memory` under `limits:` in the job's file, or raise the container's memory"
)


def how_it_ended(warehouse: str, attempt: Attempt) -> str:
    """Return how an attempt that is not alive ended, as the end of a sentence about it."""
    if was_killed(warehouse, attempt):
        return "was killed before it could say why"
    return "ended without finishing it: it failed with an error, which its own output names, or was interrupted"


def known_end(warehouse: str, attempt: Attempt, *, in_catalog: bool) -> tuple[bool, str]:
    """Return whether an attempt that shows no life has certainly ended, and what is known of it, as the end of a sentence.

    With tables ``in_catalog``, hosts usually do not share the folder of heartbeats: one on another host may be alive.
    """
    if not in_catalog or _is_here(attempt) or was_killed(warehouse, attempt):
        return True, how_it_ended(warehouse, attempt)
    return False, "may still run, or has ended: no heartbeat of it is here"


def process_of(attempt: Attempt) -> str:
    """Return the process of an attempt as people read it."""
    return f"process {attempt.pid} on {'this host' if _is_here(attempt) else attempt.host}"


def _is_here(attempt: Attempt) -> bool:
    return attempt.host in {"", socket.gethostname()}


def ended_hint(warehouse: str, planned: RunSpec, again: str) -> str:
    """Return how the attempt of a planned run ended, which is not alive, and what to do: the command ``again``."""
    first = f"Run it again: `{again}`"
    if killed := killed_hint(warehouse, planned, first):
        return killed
    return (
        f"The previous attempt, {process_of(planned.attempt)}, {how_it_ended(warehouse, planned.attempt)}. If it was an error, "
        f"fix its cause. {first}"
    )


def killed_hint(warehouse: str, planned: RunSpec | None, again: str) -> str | None:
    """Return what to do about a planned run whose process was killed: first ``again``, a sentence, then the advice.

    None if its attempt is alive or ended by itself.
    """
    if planned is None or not was_killed(warehouse, planned.attempt):
        return None
    return f"The previous attempt, {process_of(planned.attempt)}, was killed before it could say why. {again}. {MEMORY_ADVICE}"
