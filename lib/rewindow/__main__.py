"""`rewindow`, also as `python -m rewindow`: the command line."""

from __future__ import annotations

import os
import resource
import signal

_LEAST = (
    (resource.RLIMIT_AS, 2 << 30, "bytes of memory (ulimit -v)"),
    (resource.RLIMIT_NOFILE, 64, "open files (ulimit -n)"),
)
"""With less, native libraries exit with 1, send Ctrl-C to their own process or hang, so the command could not report it."""
_LIMIT = 71


def main() -> None:
    """Run the command line. Ctrl-C while it is being loaded ends with 130 and no stack trace; too low limits end with 71."""
    # A KeyboardInterrupt could be raised within a callback of the import system, which swallows it.
    usual = signal.signal(signal.SIGINT, _end_before_it_began)
    for kind, least, unit in _LEAST:
        limit = resource.getrlimit(kind)[0]
        if resource.RLIM_INFINITY != limit < least:
            _end(
                f"the process may have at most {limit:,} {unit}, and needs {least:,}. Raise the limit, then run again",
                _LIMIT,
            )
    try:
        from rewindow.app.cli.entry import main as run  # noqa: PLC0415 - takes a second, in which people press Ctrl-C

        run(lambda: signal.signal(signal.SIGINT, usual))
    except BaseException as error:  # noqa: BLE001 - Python's exit code 1 would mean a difference
        # Errors of commands do not get here. Loading or printing failed, so nothing more can be loaded.
        _end(
            f"{type(error).__name__}: {error}. Give the process more memory and open files (see ulimit), then run again",
            _LIMIT,
        )


def _end_before_it_began(*_: object) -> None:
    _end("interrupted before it began. Nothing was done", 130)


def _end(message: str, code: int) -> None:
    os.write(2, f"rewindow: {message}\n".encode(errors="replace"))
    os._exit(code)


if __name__ == "__main__":
    main()
