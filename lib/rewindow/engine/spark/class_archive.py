"""A class archive for the JVM: Spark's and Delta's classes parsed and checked once, not at each start.

It takes about two of four seconds off a start and one of three off the first job. Optional: without it, or when the
JVM finds that it does not fit (another path, another jar), everything works as before.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rewindow.engine.spark.jars import cache_dir, find_jars, pyspark_home
from rewindow.engine.spark.java import find_java

_TIMEOUT_S: Final = 300
_KEPT: Final = 3  # one for each place of installation, but not without end
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


def archive_path() -> Path:
    """Return where the archive of this Java, these jars and this place of installation lies."""
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
    """Return the Java options that use the archive, none if there is none (1 ms)."""
    path = archive_path()
    # auto: one that does not fit is passed over. Without logging, since the JVM would say so on stdout.
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:disable"] if path.is_file() else []


def make_archive() -> bool:
    """Make the archive if it is absent (20 s, 200 MB). Returns whether there is one; that there is none is no error."""
    path = archive_path()
    if path.is_file():
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    others = sorted(path.parent.glob("*.jsa"), key=lambda other: other.stat().st_mtime)
    for oldest in others[: 1 - _KEPT]:
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
    return path.is_file()
