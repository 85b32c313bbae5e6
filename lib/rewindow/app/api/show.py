"""The values of the API as HTML: whole tables, which a notebook styles for its own light or dark theme."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rewindow.app.sentences import readable as readable_row
from rewindow.contracts.instants import instant

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST = 60
"""A value of a row is shown up to so many characters."""


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Return rows of JSON values as a table, with the columns that `rewindow` prints."""
    shown = [readable_row(row) for row in rows]
    names = list(dict.fromkeys(name for row in shown for name in row))
    return _table(title, names, [[row.get(name) for name in names] for row in shown])


def preview(title: str, rows: pa.Table) -> Markup:
    """Return some rows of an Arrow table, times in UTC."""
    import pyarrow as pa  # noqa: PLC0415 - only rows need it

    times = {field.name for field in rows.schema if pa.types.is_timestamp(field.type)}
    whole = rows.cast(
        pa.schema([field.with_type(pa.int64()) if field.name in times else field for field in rows.schema])
    )
    lines = [
        [
            instant(value) if name in times and value is not None else _short(value)
            for name, value in zip(rows.column_names, line.values(), strict=True)
        ]
        for line in whole.to_pylist()
    ]
    return _table(title, rows.column_names, lines)


def lines(sentences: Iterable[str]) -> Markup:
    """Return sentences, each in a line of its own."""
    return _each('<p style="margin:0;white-space:pre-wrap">{}</p>', sentences)


def _short(value: Any) -> Any:
    text = value.hex() if isinstance(value, bytes) else value
    return f"{text[: _LONGEST - 1]}…" if isinstance(text, str) and len(text) > _LONGEST else text


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    caption = _each('<caption style="text-align:left;caption-side:top">{}</caption>', [title] if title else [])
    head = _each("<th>{}</th>", [name.strip() or " " for name in names])
    body = _each("<tr>{}</tr>", [_each("<td>{}</td>", ["" if v is None else str(v) for v in row]) for row in rows])
    return Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(caption, head, body)


def _each(element: str, contents: Iterable[str]) -> Markup:
    """Return an element for each content, which is escaped unless it is markup."""
    template = Markup(element)  # noqa: S704 - the elements above
    return Markup("").join(template.format(content) for content in contents)
