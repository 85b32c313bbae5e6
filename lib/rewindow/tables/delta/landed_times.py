"""The timestamps of landed files, by which records are released."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindow.control.ingest.watermarks import HeldFile
from rewindow.errors import StorageError
from rewindow.tables.delta.commit import existing_table
from rewindow.tables.delta.content_hash import table_files
from rewindow.tables.delta.files import Folder

TIMES_CACHED = 16_000_000


class LandedTimes:
    """A cache of the timestamps of landed files, which never change: at most `TIMES_CACHED` timestamps."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
        self._rows = 0

    def of(self, root: str, file: HeldFile) -> npt.NDArray[np.int64]:
        """Return a file's timestamps in offset order; from the log if `gc` has merged the file into another."""
        path, folder = file.path, Folder(root)
        if (root, path) not in self._files:
            exists = folder.facts(path) is not None
            rows = folder.read_table(path, ["timestamp"]) if exists else _rows_of(root, file)
            times = np.asarray(rows["timestamp"])
            if self._rows + len(times) > TIMES_CACHED:
                self._files.clear()
                self._rows = 0
            self._files[root, path] = times
            self._rows += len(times)
        return self._files[root, path]


def _rows_of(root: str, file: HeldFile) -> pa.Table:
    """Return the rows of a merged file from the log. Raises `StorageError` (74) if they are not there."""
    folder, directory = Folder(root), file.path.rpartition("/")[0]
    names = [one.path for one in table_files(root, existing_table(root)) if one.path.startswith(f"{directory}/")]
    parts = [folder.read_table(name, ["offset", "timestamp"]) for name in names]
    is_wanted = (pc.field("offset") >= file.start) & (pc.field("offset") < file.end)
    rows = pa.concat_tables(parts).filter(is_wanted).sort_by("offset") if parts else None
    if rows is None or not np.array_equal(np.asarray(rows["offset"]), np.arange(file.start, file.end)):
        message = f"{folder.full_path(file.path)} is gone, and so are its rows: restore it from a copy"
        raise StorageError(message)
    return rows
