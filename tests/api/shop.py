"""The project of `rewindow init`, with its orders as Parquet, which needs no Spark to be landed."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

import rewindow
from rewindow.app.new_project import Example, create_project

NEXT_DAYS = b"""\
order_id,customer,amount,ordered_at,received_at
11,ann,4.5,2026-01-08T07:30:00Z,2026-01-08T07:30:02Z
12,bob,12.0,2026-01-08T16:20:00Z,2026-01-08T16:20:01Z
"""
"""What the tutorial adds on the next day."""


def create_shop(root: Path) -> Path:
    """Create the project below a folder, and return its root."""
    create_project(root, Example.WINDOWS)
    first = root / "data/orders/first_days.csv"
    write_orders(root, "first_days", first.read_bytes())
    first.unlink()
    replace(root / "conf/feeds/orders.yaml", "format: csv, path: data/orders", "format: parquet, path: data/orders")
    return root


def write_orders(root: Path, name: str, csv: bytes) -> None:
    """Write a source file."""
    pq.write_table(pc_csv.read_csv(BytesIO(csv)), root / f"data/orders/{name}.parquet")


def new_shop(root: Path) -> rewindow.Project:
    """Create the project and load it."""
    return rewindow.Project.load(create_shop(root))


def edit(project: rewindow.Project, old: str, new: str) -> None:
    """Replace a text that occurs once in the job's code."""
    replace(project.root / "jobs/daily_orders.py", old, new)


def replace(path: Path, old: str, new: str) -> None:
    """Replace a text that occurs once in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
