"""`rewindow`, also as `python -m rewindow`: the command line."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command line. Ctrl-C while it is being loaded ends with 130 and no stack trace."""
    _open_missing_streams()
    # A KeyboardInterrupt could be raised within a callback of the import system, which swallows it.
    usual = signal.signal(signal.SIGINT, _end_before_it_began)
    from rewindow.app.cli.entry import main as run  # noqa: PLC0415 - takes a second, in which people press Ctrl-C

    run(lambda: signal.signal(signal.SIGINT, usual))


def _open_missing_streams() -> None:
    """Open the null device for each closed standard stream. Otherwise the next file to be opened would receive its output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, so this one


def _end_before_it_began(*_: object) -> None:
    os.write(2, b"rewindow: interrupted before it began. Nothing was done\n")
    os._exit(130)


if __name__ == "__main__":
    main()
