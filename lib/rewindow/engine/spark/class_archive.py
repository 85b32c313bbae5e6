"""A class archive (CDS) for the JVM: Spark's and Delta's classes, parsed and verified in advance.

The archive saves about two of the four seconds of startup, and one of the three seconds of the first job. It is optional:
Spark works without an archive, and the JVM ignores an archive that was made for other jars or paths.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rewindow.engine.spark.jars import cache_dir, find_jars, find_java, pyspark_home, resolve_jars
from rewindow.errors import RewindowError

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT_S: Final = 300
# Up to this number of archives for other installations are kept.
_KEPT: Final = 3
_TRAIN = """
import sys, tempfile
from rewindow.engine.spark.session import end_session, local_session

def same(batches):
    yield from batches

session = local_session(cores=2, conf={"spark.driver.extraJavaOptions": "-XX:ArchiveClassesAtExit=" + sys.argv[1]})
with tempfile.TemporaryDirectory() as scratch:
    rows = session.createDataFrame([(1, "a", 1.5), (2, "b", 2.5)], "id long, name string, number double")
    rows.repartition(2, "id").sortWithinPartitions("id").mapInArrow(same, rows.schema).collect()
    for format in ("parquet", "csv", "json"):
        rows.write.format(format).save(f"{scratch}/{format}")
        session.read.schema(rows.schema).format(format).load(f"{scratch}/{format}").count()
    for _ in range(2):
        rows.write.format("delta").mode("append").save(f"{scratch}/delta")
    session.read.format("delta").load(f"{scratch}/delta").count()
end_session(session)
"""


def _archive_path() -> Path:
    """Return the path of the archive for this Java, these jars and this installation."""
    java = find_java()
    release = java.home / "release"
    parts = [
        str(java.home.resolve()),
        release.read_text(encoding="utf-8", errors="replace") if release.is_file() else str(java.version),
        str(pyspark_home().resolve()),
        *(f"{jar} {jar.stat().st_mtime_ns}" for jar in find_jars()),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_dir().parent / "classes" / f"{key}.jsa"


def archive_options() -> list[str]:
    """Return the Java options that use the archive; an empty list if there is no archive. Takes 1 ms."""
    path = _archive_path()
    # `auto` ignores an archive that does not match. Logging is off, because the JVM would log the mismatch to stdout.
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:disable"] if _is_trusted(path) else []


def _is_trusted(path: Path) -> bool:
    """Return whether there is an archive that only this user or root can have written. The JVM executes the classes in it."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return False
    return facts.st_uid in (0, os.geteuid()) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def make_archive() -> bool:
    """Create the archive if it is missing (20 s, 200 MB). Return whether it exists now. A missing archive is not an error."""
    path = _archive_path()
    if _is_trusted(path):
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    existing = sorted(path.parent.glob("*.jsa"), key=lambda other: other.stat().st_mtime)
    for oldest in existing[: 1 - _KEPT]:
        oldest.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".make-") as scratch:
        made = Path(scratch) / "classes.jsa"
        try:
            done = subprocess.run(  # noqa: S603  # our own script
                [sys.executable, "-c", _TRAIN, str(made)], capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode == 0 and made.is_file():
            made.replace(path)
    return _is_trusted(path)


def set_up(report: Callable[[str], object]) -> None:
    """Fetch the jars and create the class archive, if they are missing. Calls ``report`` with one line of text for each step.

    Raises `ConfigError` (78) if there is no usable Java or a jar cannot be fetched.
    """
    paths = resolve_jars(report=report)
    report(f"{len(paths)} Delta jars, checked by digest, in {paths[0].parent}")
    if not _is_trusted(_archive_path()):
        report("creating the class archive, which halves the startup time (20 s, once)")
        if not make_archive():
            report("the class archive could not be created: everything works, but a start takes two seconds longer")


def _main() -> int:
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
    sys.exit(_main())
