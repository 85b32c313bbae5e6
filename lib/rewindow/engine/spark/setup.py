"""What Spark needs on a machine besides Python packages: a Java, the two Delta jars, the class archive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rewindow.engine.spark.class_archive import archive_path, make_archive
from rewindow.engine.spark.jars import resolve_jars
from rewindow.errors import RewindowError

if TYPE_CHECKING:
    from collections.abc import Callable


def set_up(report: Callable[[str], object]) -> None:
    """Fetch and make what is absent; does nothing when all is there. ``report`` is told each step in one line.

    Raises `ConfigError` if there is no usable Java or a jar cannot be fetched.
    """
    paths = resolve_jars(report=report)
    report(f"{len(paths)} Delta jars, checked by digest, in {paths[0].parent}")
    if not archive_path().is_file():
        report("class archive, for a start in half the time (20 s, once)")
        if not make_archive():
            report("no class archive could be made: all works, a start takes two seconds more")


def main() -> int:
    """Set up, showing progress; the last step of `make setup`."""

    def report(step: str) -> None:
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()

    try:
        set_up(report)
    except RewindowError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
