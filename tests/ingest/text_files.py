"""A feed of text files, which an engine lands."""

from __future__ import annotations

import gzip

from rewindow.control.ingest.land import land
from rewindow.tables.delta.feeds import DeltaFeedTables
from tests.ingest.local_engine import T0, one_log


class Files:
    """A feed of text files."""

    def __init__(self, root, engine, kind="json", **options):
        self.root, self.engine, self.kind = root, engine, kind
        self.tables, self.options = DeltaFeedTables(f"{root}/w"), options
        (root / "raw").mkdir()

    def write(self, name, text):
        path = self.root / "raw" / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())

    def land(self, now_ms=T0, **log):
        source = {"path": "raw", "format": self.kind, **self.options}
        return land(one_log(source=source, **log), self.tables, self.engine, now_ms=now_ms)
