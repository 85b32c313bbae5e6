"""Remove from a wheel the dependencies that Databricks provides. If installed, they would replace the platform's own Spark.

``python -m rewindow.databricks.slim dist/rewindow-*.whl`` rewrites wheels in place; `make databricks-wheel` does this.
"""

from __future__ import annotations

import base64
import sys
import zipfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

PLATFORM_HAS = ("pyspark", "delta-spark", "pandas", "pyarrow")


def slim(wheel: Path) -> None:
    """Remove the platform's packages from a wheel's requirements. A second call changes nothing."""
    with zipfile.ZipFile(wheel) as old:
        files = {info.filename: (info, old.read(info)) for info in old.infolist()}
    (name,) = [name for name in files if name.endswith(".dist-info/METADATA")]
    record = name.replace("METADATA", "RECORD")
    kept = b"".join(line for line in files[name][1].splitlines(keepends=True) if not _is_the_platforms(line))
    listed = _new_record(files[record][1].decode().splitlines(), name, kept)
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as made:
        for info, data in files.values():
            made.writestr(info, {name: kept, record: listed}.get(info.filename, data))
    new.replace(wheel)


def _is_the_platforms(line: bytes) -> bool:
    header, _, required = line.decode().partition(": ")
    words = required.replace(";", " ").replace("=", " ").replace(">", " ").replace("<", " ").split()
    return header == "Requires-Dist" and bool(words) and words[0] in PLATFORM_HAS


def _new_record(lines: Iterable[str], name: str, data: bytes) -> bytes:
    digest = base64.urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
    own = f"{name},sha256={digest},{len(data)}"
    return "".join(f"{own if line.startswith(f'{name},') else line}\n" for line in lines).encode()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        slim(Path(argument))
