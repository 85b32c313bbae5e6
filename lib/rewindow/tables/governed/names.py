"""Names of a catalog's tables, validated when they are parsed, and the SQL text of names and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rewindow.control.plan.spec import MAIN
from rewindow.errors import ConfigError
from rewindow.streams.serde.schema import Column

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,254}")
_TYPES: Mapping[str, str] = {"long": "bigint", "json": "string"}


class TableName(NamedTuple):
    """A table in a catalog, as Unity Catalog names it."""

    catalog: str
    schema: str
    name: str

    @classmethod
    def parse(cls, text: str, default_catalog: str) -> TableName:
        """Parse ``catalog.schema.name``, or ``schema.name`` in the default catalog. Raises `ConfigError` (78)."""
        parts = text.split(".")
        if len(parts) == 2:
            parts = [default_catalog, *parts]
        if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):
            raise ConfigError(
                "catalog-table-name-invalid",
                "{table!r} is not the name of a table: write catalog.schema.table, with letters, digits, '_' and '-'",
                table=text,
            )
        return cls(*parts)

    @property
    def quoted(self) -> str:
        """The name, quoted for SQL."""
        return f"{self.quoted_schema}.`{self.name}`"

    @property
    def quoted_schema(self) -> str:
        """The name of the table's schema, quoted for SQL."""
        return f"`{self.catalog}`.`{self.schema}`"

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.name}"


def log_name(home: TableName, feed: str, topic: str) -> TableName:
    """Return the name of the table of a log, in the schema of ``home``."""
    return home._replace(name=re.sub("[-.]", "_", f"log_{feed}__{topic}"))


def output_name(text: str, branch: str, default_catalog: str) -> str:
    """Return the full name of an output table. On a branch other than main, the name of the branch is its suffix.

    ``-`` and ``.`` in the branch's name become ``_``, because table names may not contain them. If two branches thus get the
    same table name, the table's properties prevent them from sharing the table (`CatalogTables`).
    """
    name = TableName.parse(text, default_catalog)
    full = name if branch == MAIN else name._replace(name=f"{name.name}__{re.sub('[-.]', '_', branch)}")
    return str(TableName.parse(str(full), default_catalog))


def ddl(columns: Sequence[Column]) -> str:
    """Return columns as they are declared in SQL."""
    return ", ".join(f"`{column.name}` {sql_type(column)}" for column in columns)


def sql_type(column: Column) -> str:
    """Return the type of a column as it is declared in SQL."""
    return _TYPES.get(column.type, column.type).replace(" ", "")
