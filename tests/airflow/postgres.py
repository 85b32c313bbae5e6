"""A PostgreSQL for the tests of a scheduler: the binaries of Debian's package, with a folder and a port of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.airflow.live import free_ports

START_SECONDS = 300
USER = "postgres"
"""Who runs the server if root runs the tests, because PostgreSQL refuses root."""


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs, which Debian does not put on the path."""
    found = [file.parent for file in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    elsewhere = shutil.which("initdb")
    return max(found, key=lambda folder: int(folder.parent.name), default=None) or (
        Path(elsewhere).parent if elsewhere else None
    )


def why_missing() -> str:
    """Return what is missing and how to install it; empty if all is there."""
    if binaries() is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    if missing := [name for name in ("psycopg2", "asyncpg") if find_spec(name) is None]:
        return f"no {' and '.join(missing)}: pip install psycopg2-binary asyncpg"
    return ""


def drivers() -> str:
    """Return the folder of the installed drivers, which may be elsewhere than Airflow."""
    spec = find_spec("psycopg2")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent.parent)


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server, and yield the address of its database for SQLAlchemy. It is gone afterwards, with its data."""
    programs, (port,) = binaries(), free_ports(1)
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="rewindow-postgres-"))
    who: dict[str, object] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
        who = {"user": USER, "group": USER, "extra_groups": []}
    data, log = folder / "data", folder / "log"
    how = {"cwd": folder, **who}
    try:
        create = [programs / "initdb", "-D", data, "-U", "airflow", "--auth=trust", "--no-sync"]
        subprocess.run(create, **how, check=True, capture_output=True)  # type: ignore[call-overload]
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"]
        line = [programs / "postgres", "-D", data, "-p", port, *(part for one in settings for part in ("-c", one))]
        with (
            log.open("wb") as out,
            subprocess.Popen(line, **how, stdout=out, stderr=out) as server,  # type: ignore[call-overload]
        ):
            try:
                _wait(programs, port, server, log)
                yield f"postgresql+psycopg2://airflow@127.0.0.1:{port}/postgres"
            finally:
                server.send_signal(signal.SIGINT)  # closes connections instead of waiting for them
    finally:
        shutil.rmtree(folder)


def _wait(programs: Path, port: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while subprocess.run([programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port], check=False).returncode:
        assert server.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline, f"PostgreSQL did not start\n{log.read_text(errors='replace')}"
        time.sleep(0.2)
