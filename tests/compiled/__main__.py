"""Build the wheel with the compiled core, install it into an environment of its own, and run the tests there.

The environment has all packages of the one that runs this, but its own rewindow. These tests run: those that need neither
Spark nor processes, or those of other ``--markers``, and every recorded scenario, whole and cut into runs. Their results are
those of pure Python, so they must pass; `EXCEPTIONS` names those that cannot, with the reason.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.compiled.exceptions import EXCEPTIONS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "compiled"
SOURCES = ("lib", "setup.py", "pyproject.toml", "README.md", "LICENSE")
SCRIPTS = ("airflow",)
"""Commands of other packages that tests start with the environment's Python."""
MARKERS = "not spark and not slow and not airflow"
SCENARIOS = sorted((ROOT / "tests" / "conformance" / "vectors").glob("**/*.jsonl*"))


def main() -> int:
    """Build, install and test. Return 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.compiled", description=__doc__)
    parser.add_argument("--only", choices=("build", "tests", "scenarios"), help="do only this; tests need a build")
    parser.add_argument("--markers", default=MARKERS, help="of pytest, to run other tests (default: %(default)s)")
    parser.add_argument("arguments", nargs="*", help="of pytest: the tests to run, default: all")
    options = parser.parse_args()
    python = FOLDER / "bin" / "python"
    if options.only in {None, "build"}:
        python = install(build())
    failed = 0
    if options.only in {None, "tests"}:
        failed += test(python, options.markers, options.arguments or ["tests"])
    if options.only in {None, "scenarios"}:
        failed += sum(play(python, mode) for mode in ("whole", "cut"))
    return int(failed > 0)


def build() -> Path:
    """Build the wheel from a copy of the sources, so that nothing of an earlier build gets into it. Return its path."""
    source, dist = FOLDER / "source", FOLDER / "dist"
    for folder in (source, dist):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, source / name)
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    environment = {**os.environ, "REWINDOW_COMPILED": "1"}
    subprocess.run([*pip, "--no-build-isolation", "-w", dist, source], check=True, env=environment)
    (wheel,) = dist.glob("rewindow-*.whl")
    print(f"== {wheel.name}, {wheel.stat().st_size:,} bytes", flush=True)
    return wheel


def install(wheel: Path) -> Path:
    """Install a wheel into the environment, and return its Python."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
        subprocess.run([base, "-m", "venv", "--without-pip", FOLDER], check=True)
        own = subprocess.run([python, "-c", _FOLDER_OF_PACKAGES], capture_output=True, text=True, check=True).stdout
        # Comes after the environment's own packages, and its links to other trees do not count.
        Path(own.strip(), "shared.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    for name in SCRIPTS:
        _, _, program = Path(sysconfig.get_path("scripts"), name).read_text(encoding="utf-8").partition("\n")
        (FOLDER / "bin" / name).write_text(f"#!{python}\n{program}", encoding="utf-8")
        (FOLDER / "bin" / name).chmod(0o755)
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "--no-deps", "--force-reinstall", wheel], check=True)
    return python


def test(python: Path, markers: str, tests: list[str]) -> int:
    """Run pytest on the installed package, without the exceptions. Return its exit code."""
    for name, reason in EXCEPTIONS.items():
        print(f"== not run: {name}: {reason}", flush=True)
    without = [word for name in EXCEPTIONS for word in ("--deselect", name)]
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "-m",
        markers,
        "-n",
        "2",
        "--dist",
        "loadfile",
        *without,
        *tests,
    ]
    return subprocess.run(command, cwd=ROOT, env=_environment(), check=False).returncode


def play(python: Path, mode: str) -> int:
    """Play the recorded scenarios of Kafka Streams. Return the exit code."""
    command: list[str | Path] = [python, "-m", "tests.conformance", "--mode", mode, *SCENARIOS]
    return subprocess.run(command, cwd=ROOT, env=_environment(), check=False).returncode


def _environment() -> dict[str, str]:
    """Return the environment variables without those that would put the Python sources first."""
    wanted = {"REWINDOW_EXPECTS_COMPILED": "1", "PATH": f"{FOLDER / 'bin'}:{os.environ['PATH']}"}
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **wanted}


_FOLDER_OF_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"

if __name__ == "__main__":
    sys.exit(main())
