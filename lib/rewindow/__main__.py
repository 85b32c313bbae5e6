"""`rewindow`, also as `python -m rewindow`: the command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is being loaded ends with 130 and no stack trace."""
    try:
        from rewindow.app.cli.app import main as run  # noqa: PLC0415 - takes a second, in which people press Ctrl-C
    except KeyboardInterrupt:
        sys.stderr.write("rewindow: interrupted before it began. Nothing was done\n")
        sys.stderr.flush()
        os._exit(130)
    run()


if __name__ == "__main__":
    main()
