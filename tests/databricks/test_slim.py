"""The wheel for Databricks does not require Spark, and is still a valid wheel."""

from __future__ import annotations

import base64
import zipfile
from hashlib import sha256
from pathlib import Path

from rewindow.databricks.slim import PLATFORM_HAS, slim

INFO = "rewindow-0.1.0.dist-info"
METADATA = """Name: rewindow
Requires-Dist: pyspark==4.2.0
Requires-Dist: delta-spark==4.4.0
Requires-Dist: deltalake<1.7,>=1.6.6
Requires-Dist: pandas<3,>=2.2
Requires-Dist: pendulum<4,>=3.3
Requires-Dist: polars<3; extra == "dev"

A body that says Requires: pyspark.
"""


def listed(data: bytes) -> str:
    return base64.urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


def test_packages_of_the_platform_are_not_required(tmp_path: Path) -> None:
    wheel = tmp_path / "rewindow-0.1.0-py3-none-any.whl"
    files = {"rewindow/__init__.py": b"x = 1\n", f"{INFO}/METADATA": METADATA.encode()}
    record = "".join(f"{name},sha256={listed(data)},{len(data)}\n" for name, data in files.items())
    with zipfile.ZipFile(wheel, "w") as made:
        for name, data in {**files, f"{INFO}/RECORD": f"{record}{INFO}/RECORD,,\n".encode()}.items():
            made.writestr(name, data)
    slim(wheel)
    once = wheel.read_bytes()
    slim(wheel)
    assert wheel.read_bytes() == once
    with zipfile.ZipFile(wheel) as slimmed:
        text = slimmed.read(f"{INFO}/METADATA")
        lines = slimmed.read(f"{INFO}/RECORD").decode().splitlines()
        assert slimmed.read("rewindow/__init__.py") == files["rewindow/__init__.py"]
    required = [line.split()[1] for line in text.decode().splitlines() if line.startswith("Requires-Dist: ")]
    assert required == ["deltalake<1.7,>=1.6.6", "pendulum<4,>=3.3", "polars<3;"]
    assert not any(name.startswith(PLATFORM_HAS) for name in required)
    assert text.decode().endswith("Requires: pyspark.\n")
    assert f"{INFO}/METADATA,sha256={listed(text)},{len(text)}" in lines
    assert len(lines) == 3
