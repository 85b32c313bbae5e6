"""The real Kafka Streams, driven by a few Java classes that read the format of the scenarios (`java/Oracle.java`)."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rewindow.engine.spark.jars import cache_dir, find_java

SOURCES = Path(__file__).with_name("java")


def play(scenarios: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Play scenarios and return each with Kafka's result, in the format of the recordings.

    Raises `SystemExit` if Maven or a JDK is missing, or the oracle itself fails.
    """
    classpath = _built()
    lines = "".join(json.dumps({"scenario": scenario}) + "\n" for scenario in scenarios)
    command = [_tool("java"), "-Xmx600m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "Oracle"]
    played = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if played.returncode:
        raise SystemExit(f"the oracle failed:\n{played.stderr[-2000:]}")
    return [json.loads(line) for line in played.stdout.splitlines()]


def _built() -> str:
    """Compile the oracle unless these very sources are compiled already, and return its class path."""
    files = sorted(SOURCES.iterdir())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    folder = cache_dir().parent / "oracle" / digest
    jars, classes, done = folder / "classpath.txt", folder / "classes", folder / "compiled"
    sources = sorted(SOURCES.glob("*.java"))
    if done.exists():
        return f"{jars.read_text().strip()}:{classes}"
    classes.mkdir(parents=True, exist_ok=True)
    pom, output = str(SOURCES / "pom.xml"), f"-Dmdep.outputFile={jars}"
    _run(_tool("mvn"), "-q", "-B", "-f", pom, "dependency:build-classpath", output)
    _run(_tool("javac"), "-nowarn", "-cp", jars.read_text().strip(), "-d", str(classes), *map(str, sources))
    done.touch()
    return f"{jars.read_text().strip()}:{classes}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _tool(name: str) -> str:
    beside = Path(find_java().home) / "bin" / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise SystemExit(f"the oracle needs {name}: install a JDK and Maven (apt-get install maven)")
    return found
