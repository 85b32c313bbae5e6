"""`rewindow`, also as `python -m rewindow`: the command line."""

from __future__ import annotations

import os
import resource
import signal

_LEAST = (
    (resource.RLIMIT_AS, 2 << 30, "bytes of memory (ulimit -v)"),
    (resource.RLIMIT_NOFILE, 64, "open files (ulimit -n)"),
)
"""The least resource limits. With lower limits, native libraries exit with 1, send Ctrl-C to their own process or hang, and
the command cannot report the problem."""
_LIMIT = 71


def main() -> None:
    """Run the command line. Ctrl-C during loading exits with 130 and no stack trace. Too low resource limits exit with 71."""
    _open_missing_streams()
    # A KeyboardInterrupt could be raised in a callback of the import system, which would swallow it.
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
    except KeyboardInterrupt:  # a second Ctrl-C, while the command ends
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from rewindow.storage.scratch import remove_all  # noqa: PLC0415 - loaded by now, unlike at the start

        remove_all()
        _end("interrupted again. Anything that was committed is kept: run the command again", 130)
    except BaseException as error:  # noqa: BLE001 - Python's exit code 1 would mean a difference
        # Errors of commands do not get here. Here, loading or printing failed, so nothing more can be loaded.
        _end(
            f"{type(error).__name__}: {error}. Give the process more memory and open files (see ulimit), then run again",
            _LIMIT,
        )


def _open_missing_streams() -> None:
    """Open the null device for each closed standard stream.

    Otherwise the next file that is opened would get the stream's output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number: this one


def _end_before_it_began(*_: object) -> None:
    _end("interrupted before it began. Nothing was done", 130)


def _end(message: str, code: int) -> None:
    os.write(2, f"rewindow: {message}\n".encode(errors="replace"))
    os._exit(code)


if __name__ == "__main__":
    main()
