"""The two Delta jars: fetched once into a cache, and verified by digest.

`spark.jars.packages` would resolve 33 jars at each start, and fails if ~/.m2 contains a POM without its jar. Two jars are
enough for path tables. The Ivy that PySpark ships fetches them by coordinate from its default repository, or from the mirror
in the Ivy settings file named by REWINDOW_IVY_SETTINGS.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rewindow.engine.spark.java import find_java
from rewindow.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar: its coordinate and the digest of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The file name in the cache."""
        return f"{self.artifact}-{self.version}.jar"


DELTA = "4.4.0"
"""The newest Delta whose jars exist for every supported Spark."""

_STORAGE = Jar("io.delta", "delta-storage", DELTA, "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc")
_DELTA_SPARK = {
    "4.0": "49e899667168b9412f83cbe894ce264107d7b896d6c5e12edca4e216845c1104",
    "4.1": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "4.2": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
}
"""The digest of Delta's jar for each minor version of Spark."""


def required_jars(spark: str | None = None) -> tuple[Jar, ...]:
    """Return the Delta jars for a Spark version, by default that of the installed pyspark.

    Raises `ConfigError` (78) if pyspark is not installed or Delta has no jar for it.
    """
    spark = spark or _pyspark_version()
    minor = ".".join(spark.split(".")[:2])
    if minor not in _DELTA_SPARK:
        versions = ", ".join(f"{version}.x" for version in _DELTA_SPARK)
        raise ConfigError(
            "spark-version-not-supported",
            "Delta {delta} has no jar for pyspark {spark}: install one of {versions}",
            delta=DELTA,
            spark=spark,
            versions=versions,
        )
    return Jar("io.delta", f"delta-spark_{minor}_2.13", DELTA, _DELTA_SPARK[minor]), _STORAGE


def _no_pyspark() -> ConfigError:
    return ConfigError("pyspark-missing", "pyspark is not installed with its jars: `pip install rewindow` again")


def _pyspark_version() -> str:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise _no_pyspark() from None


def cache_dir() -> Path:
    """Return the folder of the jars: in $REWINDOW_CACHE, else in $XDG_CACHE_HOME/rewindow, else in ~/.cache/rewindow."""
    named = os.environ.get("REWINDOW_CACHE")
    if named:
        return Path(named).expanduser().absolute() / "jars"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "rewindow" / "jars"


def find_jars() -> tuple[Path, ...]:
    """Return the paths of the jars in the cache, after verifying their digests (12 ms).

    Raises `ConfigError` (78) if a jar is missing or has another digest.
    """
    folder, jars = cache_dir(), required_jars()
    for jar in jars:
        problem = _problem(folder / jar.file_name, jar)
        if problem:
            raise ConfigError(
                "jar-not-usable",
                "{jar} {reason}: run `rewindow setup` once",
                jar=folder / jar.file_name,
                reason=problem,
            )
    return tuple(folder / jar.file_name for jar in jars)


def resolve_jars(*, report: Callable[[str], object] = str) -> tuple[Path, ...]:
    """Fetch missing jars into the cache and return all paths. Safe to run concurrently, because files are renamed in.

    Calls ``report`` for each step. Raises `ConfigError` (78) if a jar cannot be fetched or has another digest.
    """
    folder, jars = cache_dir(), required_jars()
    folder.mkdir(parents=True, exist_ok=True)
    for number, jar in enumerate(jars, start=1):
        if _problem(folder / jar.file_name, jar):
            report(f"fetching {number}/{len(jars)} {jar.file_name}")
            _fetch(jar, folder)
    return find_jars()


def _problem(path: Path, jar: Jar) -> str | None:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return "is absent"
    return None if digest == jar.sha256 else f"has sha256 {digest}, not {jar.sha256}"


def _fetch(jar: Jar, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        fetched = Path(scratch) / jar.file_name
        try:
            done = subprocess.run(  # noqa: S603  # our own command line
                ivy_command(jar, Path(scratch)),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
            output = done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            output = f"no answer within {_TIMEOUT_S} s"
        problem = _problem(fetched, jar)
        if problem is None:
            fetched.replace(folder / jar.file_name)
            return
    reason = problem if "absent" not in problem else f"could not be fetched ({_reason(output)})"
    raise ConfigError(
        "jar-not-fetched",
        "{group}:{artifact}:{version} {reason}: check the network or proxy (HTTPS_PROXY), set "
        "REWINDOW_IVY_SETTINGS to the Ivy settings of your mirror, or copy {file} into {folder} "
        "manually",
        group=jar.group,
        artifact=jar.artifact,
        version=jar.version,
        reason=reason,
        file=jar.file_name,
        folder=folder,
    )


def _reason(output: str) -> str:
    """Return the line of Ivy's output that states the problem."""
    lines = [line.strip(" :\t") for line in output.splitlines()]
    relevant = [
        line for line in lines if "not found" in line.lower() or "exception" in line.lower() or "Server" in line
    ]
    return (relevant or [line for line in lines if line] or ["no output"])[0]


def pyspark_home() -> Path:
    """Return the folder of the installed PySpark, without importing it. Raises `ConfigError` (78) if there is none."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise _no_pyspark()
    return Path(spec.origin).parent


def ivy_command(jar: Jar, scratch: Path) -> list[str]:
    """Return the command that fetches a single jar into a folder. It neither reads nor writes files elsewhere."""
    ivy = sorted((pyspark_home() / "jars").glob("ivy-*.jar"))
    if not ivy:
        raise _no_pyspark()
    settings = os.environ.get("REWINDOW_IVY_SETTINGS")
    return [
        str(find_java().home / "bin" / "java"),
        *_proxy_properties(),
        f"-Divy.default.ivy.user.dir={scratch / 'ivy'}",
        "-jar",
        str(ivy[0]),
        *(["-settings", settings] if settings else []),
        "-notransitive",
        *("-types", "jar", "-confs", "default"),
        *("-cache", str(scratch / "ivy-cache")),
        *("-dependency", jar.group, jar.artifact, jar.version),
        *("-retrieve", str(scratch / "[artifact]-[revision].[ext]")),
    ]


def _proxy_properties() -> list[str]:
    """Translate HTTPS_PROXY, which Java ignores, into Java properties."""
    proxy = urlsplit(os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or "")
    if not proxy.hostname:
        return []
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"]
