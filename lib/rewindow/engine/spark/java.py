"""Find the Java that runs Spark, before anything starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rewindow.errors import ConfigError, RewindowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

USABLE = (17, 21)
# Spark 4.2 requires this module on its command line; runtimes reduced with jlink lack it.
NEEDED_MODULE = "jdk.incubator.vector"
_LAUNCHED_WITH = ("bash", "dirname")
_INSTALLED = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home", "/opt/java/*")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its home and its feature version (17, 21, ...)."""

    home: Path
    version: int


def find_java(environ: Mapping[str, str] | None = None, installed: Iterable[str] = _INSTALLED) -> Java:
    """Return the Java to start Spark with: JAVA_HOME, else `java` on PATH, else an installed one; 17 or 21 only.

    It skips a JAVA_HOME with another version, which is usually set for other software. Raises `ConfigError` (78) with
    what to install and what was found.
    """
    environ = os.environ if environ is None else environ
    unusable: list[str] = []
    for home in _homes(environ, installed):
        java = _inspect(home)
        if java is not None and java.version in USABLE:
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
    """Yield the candidate homes in order of preference, without duplicates."""
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
        # The newest usable version first, then by name, so that machines with the same Javas choose the same one.
        homes = sorted(root.glob(pattern[len(str(root)) + 1 :])) if root.is_dir() else []
        yield from sorted(homes, key=_release_version, reverse=True)


def _release_version(home: Path) -> int:
    java = _inspect(home)
    return java.version if java is not None else 0


def _inspect(home: Path) -> Java | None:
    """Return the Java at a home; read its version from the `release` file, else from `java -version`."""
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if modules and NEEDED_MODULE not in modules.group(1).split():
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
    """Return 17 for "17.0.15", 8 for "1.8.0_412"."""
    parts = re.findall(r"\d+", version)
    if not parts:
        return None
    return int(parts[1]) if parts[0] == "1" and len(parts) > 1 else int(parts[0])


def main() -> int:
    """Print the Java that Spark would use: the preflight of `make setup`."""
    try:
        java = find_java()
    except RewindowError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"JDK {java.version}: {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
