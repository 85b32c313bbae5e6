"""The page of exit codes, from the errors and from what a scheduler does after each."""

from __future__ import annotations

from rewindow.contracts.exit_codes import CODES, LIMIT, Next, meaning, what_next
from rewindow.errors import RewindowError
from tests.docs.markdown import GENERATED, in_one_line, table

HEAD = f"""\
# Exit codes

The exit code of a command says what a scheduler should do. A retry is always safe, because it does nothing twice. The
[runbook](../guides/runbook.md#by-exit-code) says what a person should do.

{GENERATED}
"""
SHOULD = {
    Next.DONE: "go on",
    Next.RETRY: "retry",
    Next.RETRY_ONCE: "retry once, then stop",
    Next.FAIL: "stop",
}


def page() -> str:
    """Return the text of the page."""
    errors = {kind.exit_code: kind for kind in RewindowError.__subclasses__()}
    rows = [
        (
            f"[{code}](../guides/runbook.md#exit-code-{code})" if code else "0",
            _error(errors.get(code)),
            _words(code),
            _next(code),
        )
        for code in sorted({*CODES, *errors})
    ]
    return HEAD + table(("code", "error", "meaning", "a scheduler should"), rows)


def _words(code: int) -> str:
    return "done, or already done" if code == 0 else meaning(code).partition(": ")[2]


def _error(kind: type[RewindowError] | None) -> str:
    return f"`{kind.__name__}`: {in_one_line(kind.__doc__)}" if kind else ""


def _next(code: int) -> str:
    return SHOULD[what_next(code, limits_before=0)] if code != LIMIT else SHOULD[Next.RETRY_ONCE]
