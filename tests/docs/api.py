"""The page of the public API, from the docstrings and signatures of what `rewindow` exports."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import rewindow
import rewindow.testing
from tests.docs.configuration import annotations_and_docstrings
from tests.docs.markdown import in_one_line, text_of

HEAD = """\
# API

What `rewindow` and `rewindow.testing` export, with signatures. [What to import](names.md) groups the names by purpose. Durations
are text (`"10m"`) or a `timedelta`; names that end in `_ms` are whole milliseconds.

"""
RETURNED = "rewindow.app.api."
"""The modules of a project and of what its methods return, which nobody constructs."""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, "## rewindow\n\n", *(entry(name, getattr(rewindow, name)) for name in sorted(rewindow.__all__))]
    parts += ["## rewindow.testing\n\n"]
    parts += [entry(name, getattr(rewindow.testing, name)) for name in sorted(rewindow.testing.__all__)]
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def entry(name: str, what: Any) -> str:
    """Return the section of one exported name."""
    if not (inspect.isclass(what) or inspect.isroutine(what)):
        return f"### {name}\n\n{kind(what)}\n\n"
    if inspect.isclass(what) and what.__module__.startswith(RETURNED):
        shown = f"{text_of(what.__doc__)}\n\n{fields(what)}"
    else:
        shown = f"```text\n{name}{signature(what)}\n```\n\n{text_of(what.__doc__)}\n\n"
    head = f"### {name}\n\n{shown}"
    return head + "".join(method_entry(name, *one) for one in methods(what)) if inspect.isclass(what) else head


def fields(kind: type) -> str:
    """Return the public attributes of a class with their types and docstrings; empty without any."""
    known = annotations_and_docstrings(kind)
    lines = [
        f"* `{name}: {annotation}`{f': {in_one_line(text)}' if text else ''}\n"
        for name, (annotation, text) in known.items()
        if not name.startswith("_")
    ]
    return "".join([*lines, "\n"] if lines else [])


def kind(what: Any) -> str:
    """Return what a name stands for that is neither a class nor a function."""
    return "The version, as text." if isinstance(what, str) else f"A type: `{what}`.".replace("typing.", "")


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class that have a docstring, by name, inherited ones of ours too."""
    for name in sorted(
        {name for base in kind.__mro__ if base.__module__.startswith("rewindow") for name in vars(base)}
    ):
        member = inspect.getattr_static(kind, name)
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        is_shown = isinstance(function, property) or inspect.isfunction(function)
        if not name.startswith("_") and is_shown and function.__doc__:
            yield name, function


def method_entry(owner: str, name: str, member: Any) -> str:
    """Return the entry of one method: its call in a line of code, then what it does."""
    call = name if isinstance(member, property) else f"{name}{signature(member, is_method=True)}"
    return f"**`{owner}.{call}`**\n\n{text_of(member.__doc__)}\n\n"


def signature(what: Any, *, is_method: bool = False) -> str:
    """Return a signature as written, without `self` and the module paths of types."""
    try:
        found = inspect.signature(what)
    except ValueError:
        return "(...)"
    parameters = [one for one in found.parameters.values() if not (is_method and one.name in {"self", "cls"})]
    shown = str(
        found.replace(
            parameters=parameters, return_annotation=found.return_annotation if is_method else inspect.Signature.empty
        )
    )
    shown = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", shown)
    shown = re.sub(
        r"<(?:\w+\.)*(\w+): [^<>]*>", r"\1", re.sub(r"<(?:function|class|object|factory|lambda)[^<>]*>", "...", shown)
    )
    return re.sub(r"(?:\w+\.)+(?=[A-Z])", "", shown).replace("'", "")
