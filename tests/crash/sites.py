"""The sites at which a process can die: before each named step, and around each durable write, by wrapping the calls.

A site's name states the step and the event in it. At ``commit > runs: landed``, for example, the commit of the ledger has
landed and its answer was not read. Tracing a clean call lists the sites, so a new step gets its cases automatically.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable

from rewindow.engine.worker.parquet_writer import FileWriter
from rewindow.tables.delta import commit as tables
from rewindow.tables.delta import open_table
from rewindow.tables.delta.files import Folder

KILLED = 137
# Where a landing runs code of a project, `os._exit` is refused: a kill needs the real one.
_exit = os._exit
Visit = Callable[[str], None]


@dataclass
class Sites:
    """The sites that this process passes. ``visit`` is called at each site, ``tears`` decides about a torn write.

    ``fine`` adds the sites right after a table was opened. To die there is the same as to die before, but to be held there
    is not. ``committing`` is called for each commit that is sent.
    """

    warehouse: str
    visit: Visit
    tears: Callable[[str], bool] = lambda _name: False
    fine: bool = False
    committing: Callable[[str, str, int], None] = lambda _table, _app_id, _version: None
    step: str = "begin"
    _seen: Counter[str] = field(default_factory=Counter)
    _unread: set[str] = field(default_factory=set)

    def pass_site(self, what: str = "") -> str:
        name = self.named(what)
        self.visit(name)
        return name

    def named(self, what: str = "") -> str:
        name = f"{self.step} > {what}" if what else self.step
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name} ({self._seen[name]})"

    def drive(self, machine: Iterator[str]) -> None:
        """Execute the steps of a machine. Each step is a site."""
        for step in machine:
            self.step = step
            self.pass_site()
        self.step = "end"
        self.pass_site()

    def install(self) -> None:
        """Wrap the calls that write, in this process from now on."""
        self._wrap_commits()
        self._wrap_files()

    def _wrap_commits(self) -> None:
        commit, create, init = DeltaTable.create_write_transaction, DeltaTable.create, DeltaTable.__init__
        append = tables.append_commit  # type: ignore[attr-defined]

        @wraps(append)
        def appending(path: str, table: DeltaTable, actions: Any, transactions: Mapping[str, int]) -> None:
            name = self.label(path)
            self.pass_site(f"{name}: files written")
            for app_id, version in transactions.items():
                self.committing(name, app_id, version)
            append(path, table, actions, transactions)
            self._unread.add(name)
            self.pass_site(f"{name}: landed")

        @wraps(commit)
        def committing(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
            name = self.label(table.table_uri)
            self.pass_site(f"{name}: files written")
            for transaction in kwargs["commit_properties"].app_transactions or ():
                self.committing(name, transaction.app_id, transaction.version)
            commit(table, *args, **kwargs)
            self._unread.add(name)
            self.pass_site(f"{name}: landed")

        @wraps(create)
        def creating(path: str, *args: Any, **kwargs: Any) -> DeltaTable:
            name = self.label(str(path))
            self.pass_site(f"{name}: create")
            made = create(path, *args, **kwargs)
            self.pass_site(f"{name}: created")
            return made

        @wraps(init)
        def opening(table: DeltaTable, table_uri: Any, *args: Any, **kwargs: Any) -> None:
            init(table, table_uri, *args, **kwargs)
            if (name := self.label(str(table_uri))) in self._unread:
                self._unread.discard(name)
                self.pass_site(f"{name}: read back")

        look = open_table.take  # type: ignore[attr-defined]

        @wraps(look)
        def looking(path: str, **how: Any) -> Any:
            seen = look(path, **how)
            if self.fine:
                self.pass_site(f"{self.label(path)}: looked")
            return seen

        open_table.take = looking  # type: ignore[attr-defined]
        tables.append_commit = appending  # type: ignore[attr-defined]
        DeltaTable.create_write_transaction = committing  # type: ignore[method-assign,assignment]
        DeltaTable.create = staticmethod(creating)  # type: ignore[method-assign,assignment]
        DeltaTable.__init__ = opening  # type: ignore[method-assign,assignment]

    def _wrap_files(self) -> None:
        write, close, open_file, unlink = Folder._write, FileWriter.close, FileWriter._open, Path.unlink

        @wraps(write)
        def writing(folder: Folder, path: str, data: Any) -> Any:
            name = self.label(folder.root)
            self.pass_site(f"{name}: write")
            torn = self.named(f"{name}: half written")
            if self.tears(torn):
                write(folder, path, data[: len(data) // 2])
            self.visit(torn)
            return write(folder, path, data)

        @wraps(open_file)
        def opening(writer: FileWriter) -> Any:
            made = open_file(writer)
            self.pass_site(f"{writer._target}: opened")
            return made

        @wraps(close)
        def closing(writer: FileWriter) -> Any:
            made = close(writer)
            self.pass_site(f"{writer._target}: closed")
            return made

        @wraps(unlink)
        def unlinking(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as pathlib has it
            if path.suffix == ".parquet":
                self.pass_site("unlink")
            unlink(path, missing_ok=missing_ok)

        delete = Folder.delete

        @wraps(delete)
        def deleting(folder: Folder, path: str, **kwargs: Any) -> None:
            self.pass_site(f"{self.label(folder.root)}: delete")
            delete(folder, path, **kwargs)

        Folder.delete = deleting  # type: ignore[method-assign,assignment]
        Folder._write = writing  # type: ignore[method-assign,assignment]
        FileWriter._open = opening  # type: ignore[method-assign,assignment]
        FileWriter.close = closing  # type: ignore[method-assign,assignment]
        Path.unlink = unlinking  # type: ignore[method-assign,assignment]

    def label(self, location: str) -> str:
        """Return a table's name: its path below the warehouse."""
        path = unquote(urlsplit(location).path) if "://" in location else location
        with suppress(ValueError):
            return str(Path(path).relative_to(self.warehouse))
        return Path(path).name


def traced(warehouse: str, machine: Iterator[str], *, fine: bool = False) -> list[str]:
    """Execute a machine to its end, and return the sites that it passed."""
    names: list[str] = []
    sites = Sites(warehouse, names.append, fine=fine)
    sites.install()
    sites.drive(machine)
    return names


def die_at(warehouse: str, machine: Iterator[str], site: str, *, by_signal: bool, mark: int) -> None:
    """Execute a machine and die at a site, after writing the site's name to the descriptor ``mark``."""

    def visit(name: str) -> None:
        if name == site:
            os.write(mark, name.encode())
            die(by_signal=by_signal)

    sites = Sites(warehouse, visit, tears=lambda name: name == site)
    sites.install()
    sites.drive(machine)


def die(*, by_signal: bool) -> None:
    """End this process immediately, like a crash: no buffer is flushed, no handler runs."""
    if by_signal:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    _exit(KILLED)
