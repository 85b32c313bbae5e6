"""Files of a branch that a promotion copies into a table of `main`: only whole ones."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from rewindow.tables.delta.files import Folder
from tests.refusals import containing, refused


def test_a_file_with_other_bytes_than_were_written_is_not_copied(tmp_path: Path) -> None:
    branch, main = tmp_path / "totals__fix", tmp_path / "totals"
    branch.mkdir()
    main.mkdir()
    data = b"PAR1 rows PAR1"
    name = f"{'a' * 32}-{'b' * 32}.{crc32(data):08x}.parquet"
    (branch / name).write_bytes(data.replace(b"rows", b"r0ws"))
    with refused("file-unreadable", error=containing("its bytes are not what was written")):
        Folder(str(main)).copy_from(Folder(str(branch)), name, len(data))
    assert not (main / name).exists()
    (branch / name).write_bytes(data)
    Folder(str(main)).copy_from(Folder(str(branch)), name, len(data))
    assert (main / name).read_bytes() == data
