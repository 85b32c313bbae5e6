"""HTML from Python values. Every text and attribute is escaped, and only `Html` is taken as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Markup that is already escaped."""

    __slots__ = ()


_LONG = 24
"""Longer texts in tables get a wide column, so that they stay readable on a narrow screen."""

Content = str | Iterable["Content"]
"""A text, markup, or several of them."""


def render(content: Content) -> str:
    """Return content as markup."""
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return escape(content)
    return "".join(render(part) for part in content)


def tag(name: str, *content: Content, css: str = "", **attributes: str) -> Html:
    """Return an element. ``css`` is its class; an underscore in an attribute's name stands for a hyphen."""
    given = {**({"class": css} if css else {}), **attributes}
    listed = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in given.items())
    return Html(f"<{name}{listed}>{render(content)}</{name}>")


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[Content]], *, numbers: Sequence[int] = ()
) -> Html:
    """Return a table with a caption. ``numbers``: the columns that are aligned right."""
    classes = dict.fromkeys(numbers, "number")
    head = tag("tr", [tag("th", text, scope="col", css=classes.get(at, "")) for at, text in enumerate(heads)])
    body = [tag("tr", [_value(value, classes.get(at, "")) for at, value in enumerate(row)]) for row in rows]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))
    return tag("div", whole, css="scroll", tabindex="0", role="region", aria_label=caption)


def _value(content: Content, css: str) -> Html:
    is_long = not css and len(render(content)) > _LONG
    return tag("td", content, css="wide" if is_long else css)


def code(text: str) -> Html:
    """Return a text as code."""
    return tag("code", text)


def with_code(text: str) -> Html:
    """Return a sentence in which what stands between backticks is code."""
    parts = text.split("`")
    return Html("".join(code(part) if at % 2 else escape(part) for at, part in enumerate(parts)))
