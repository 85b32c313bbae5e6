"""Write a small project with a warehouse in today's format: ``python -m tests.formats``.

Do this once for each released format, before `FORMAT` grows, and commit the archive. `format_1.tar.xz` was written by the
code of 0.1 (commit 8f134da, the last with its names), with that commit's own `tests.bad_input.scene`. The host of
the attempts and the folder are replaced, so that nothing of the machine is in the archive.
"""

from __future__ import annotations

import socket
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rewindow.control.plan.stored_rows import FORMAT
from tests.bad_input.scene import make_template, without_spark

FOLDER = Path(__file__).parent
HOST = "another-host"


def write(archive: Path) -> None:
    """Write the project of `tests.bad_input`: two hours are landed and replayed, a third waits in the source."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched, without_spark():
        patched.setattr(socket, "gethostname", lambda: HOST)
        bench = make_template(Path(folder) / "project")
        for log in bench.warehouse.rglob("_delta_log/*.json"):  # delta-rs notes where it created a table
            log.write_text(log.read_text(encoding="utf-8").replace(f"file://{folder}", "file://"), encoding="utf-8")
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(bench.root, "project", filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    write(FOLDER / f"format_{FORMAT}.tar.xz")
