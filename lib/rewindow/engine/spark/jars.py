"""The Java that runs Spark, and the two Delta jars, which are fetched into a cache once and verified by digest.

Spark's setting `spark.jars.packages` is not used. It would resolve 33 jars at each start, and it fails if ~/.m2 contains a
POM without its jar. Two jars are enough for tables that are opened by path. The Ivy in PySpark fetches these two jars by
coordinate. It uses its default repository, or the mirror in the Ivy settings file that REWINDOW_IVY_SETTINGS names.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rewindow.errors import ConfigError, RewindowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_USABLE = (17, 21)
# Spark 4.2 requires this module on its command line; runtimes reduced with jlink lack it.
_NEEDED_MODULE = "jdk.incubator.vector"
_LAUNCHED_WITH = ("bash", "dirname")
_INSTALLED = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home", "/opt/java/*")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its home and its feature version (17, 21, ...)."""

    home: Path
    version: int


def find_java(environ: Mapping[str, str] | None = None, installed: Iterable[str] = _INSTALLED) -> Java:
    """Return the Java to start Spark with: JAVA_HOME, else `java` on PATH, else an installed one; 17 or 21 only.

    A JAVA_HOME with another version is skipped, because it is usually set for other software. Raises `ConfigError` (78), whose
    message says what to install and what was found.
    """
    environ = os.environ if environ is None else environ
    unusable: list[str] = []
    for home in _homes(environ, installed):
        java = _inspect(home)
        if java is not None and java.version in _USABLE:
            return java
        if java is not None:
            unusable.append(f"{java.version} in {java.home}")
    others = f"; found only {', '.join(unusable)}" if unusable else ""
    raise ConfigError(
        "java-not-found",
        "rewindow needs a JDK 17 or 21: apt-get install openjdk-17-jre-headless (or set JAVA_HOME){found}",
        found=others,
    )


def check_launcher(environ: Mapping[str, str] | None = None) -> None:
    """Raise `ConfigError` (78) if PATH lacks a program that Spark's launcher, a bash script, calls."""
    environ = os.environ if environ is None else environ
    path = environ.get("PATH", os.defpath)
    missing = [name for name in _LAUNCHED_WITH if shutil.which(name, path=path) is None]
    if missing:
        shown = f"PATH={path}" if path else "PATH, which is empty"
        raise ConfigError(
            "launcher-program-missing",
            "Spark's launcher needs {programs} on {path}: add the folder, as in PATH=/usr/bin:/bin",
            programs=" and ".join(missing),
            path=shown,
        )


def _homes(environ: Mapping[str, str], installed: Iterable[str]) -> Iterator[Path]:
    """Yield the folders in which Java may be installed, in order of preference, without duplicates."""
    yielded: set[Path] = set()
    for home in _candidates(environ, installed):
        real = home.resolve()
        if real not in yielded:
            yielded.add(real)
            yield home


def _candidates(environ: Mapping[str, str], installed: Iterable[str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in installed:
        root = Path(pattern.split("*", maxsplit=1)[0])
        # The newest version comes first. Equal versions are sorted by name, so that equal machines choose the same Java.
        homes = sorted(root.glob(pattern[len(str(root)) + 1 :])) if root.is_dir() else []
        yield from sorted(homes, key=_release_version, reverse=True)


def _release_version(home: Path) -> int:
    java = _inspect(home)
    return java.version if java is not None else 0


def _inspect(home: Path) -> Java | None:
    """Return the Java at a home. Its version is read from the file `release`; without this file, from `java -version`."""
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if modules and _NEEDED_MODULE not in modules.group(1).split():
        return None
    stated = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    version = _feature(stated.group(1)) if stated else _ask(binary)
    return None if version is None else Java(home=home, version=version)


def _ask(binary: Path) -> int | None:
    try:
        done = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603  # a Java on the user's machine
    except (OSError, subprocess.SubprocessError):
        return None
    stated = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return _feature(stated.group(1)) if stated else None


def _feature(version: str) -> int | None:
    """Return the feature version of a version's text: 17 for "17.0.15", 8 for "1.8.0_412"."""
    parts = re.findall(r"\d+", version)
    if not parts:
        return None
    return int(parts[1]) if parts[0] == "1" and len(parts) > 1 else int(parts[0])


def main() -> int:
    """Print the Java that Spark would use. `make setup` calls this first."""
    try:
        java = find_java()
    except RewindowError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"JDK {java.version}: {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())


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
"""The newest version of Delta that has jars for every supported version of Spark."""

_STORAGE = Jar("io.delta", "delta-storage", DELTA, "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc")
_DELTA_SPARK = {
    "4.0": "49e899667168b9412f83cbe894ce264107d7b896d6c5e12edca4e216845c1104",
    "4.1": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "4.2": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
}
"""The digest of Delta's jar for each minor version of Spark."""


def required_jars(spark: str | None = None) -> tuple[Jar, ...]:
    """Return the Delta jars for a version of Spark, by default the version of the installed pyspark.

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
    """Fetch missing jars into the cache and return the paths of all jars.

    Several processes may call this at the same time, because only complete files are moved into the cache.

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
    """Return the folder of the installed PySpark, without importing it. Raises `ConfigError` (78) if it is not installed."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise _no_pyspark()
    return Path(spec.origin).parent


def ivy_command(jar: Jar, scratch: Path) -> list[str]:
    """Return the command that fetches a single jar into the folder ``scratch``. It reads and writes no files elsewhere."""
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
