"""Set up what Spark needs besides Python packages: Java, the two Delta jars, the class archive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rewindow.engine.spark.class_archive import archive_path, make_archive
from rewindow.engine.spark.jars import resolve_jars
from rewindow.errors import RewindowError

if TYPE_CHECKING:
    from collections.abc import Callable


def set_up(report: Callable[[str], object]) -> None:
    """Fetch and create what is missing. Calls ``report`` with one line per step.

    Raises `ConfigError` (78) if there is no usable Java or a jar cannot be fetched.
    """
    paths = resolve_jars(report=report)
    report(f"{len(paths)} Delta jars, checked by digest, in {paths[0].parent}")
    if not archive_path().is_file():
        report("creating the class archive, which halves the startup time (20 s, once)")
        if not make_archive():
            report("the class archive could not be created: everything works, but a start takes two seconds longer")


def main() -> int:
    """Set up and print progress: the last step of `make setup`."""

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
