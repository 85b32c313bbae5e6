"""The retired terms with their replacements, and a search for them in Python files and pages.

A term is retired everywhere or only in names. A term of the second kind may be an ordinary word in a sentence.
Names are checked where they are bound (modules, classes, functions, parameters, variables, fields), so that the words of
third parties (``pytest.fixture(scope=...)``, ``os.environ``) need no exceptions.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from typing import NamedTuple

EVERYWHERE = {
    "lineage": "branch",
    "lineages": "branches",
    "lane": "execution",
    "lanes": "executions",
    "columnar": "vectorized",
    "shelf": "spill",
    "shelves": "spills",
    "shelved": "spilled",
    "shelving": "spilling",
    "mend": "repair",
    "mends": "repairs",
    "mended": "repaired",
    "mending": "repair",
    "damage": "drift",
    "damages": "drift",
    "keeper": "gc",
    "keepers": "gc",
    "sweep": "remove orphan files",
    "sweeps": "removes orphan files",
    "sweeper": "orphan files",
    "sweeping": "removing orphan files",
    "swept": "removed",
    "sameness": "content hash",
    "seam": "protocol",
    "seams": "protocols",
    "settle": "raise the error of an exit code",
    "settles": "is repeatable",
    "settling": "exit codes",
    "wiring": "assembly",
    "seat": "queued task",
    "seats": "queued tasks",
}
"""Words that no page, message, comment or name contains."""

PHRASES = {
    r"(?:aligned|gathered|shuffled) (?:source|reader)s?": "partition-local reader, colocated reader or shuffle reader",
    r"laws? [1-6]\b": "L1 to L6",
    r"decisions? [0-9]+": "ADR-n or D1 to D25",
    r"DESIGN\.md`?,? [0-9]+": "ADR-n",
    r"design(?:\.md)?`?,? section [0-9]+": "ADR-n, or a law by its number",
}
"""Phrases that no page, message, comment or name contains, as regular expressions."""

IN_NAMES = {
    "accepting": "compatibility",
    "aligned": "partition-local",
    "believed": "verified",
    "cell": "value",
    "cells": "values",
    "chance": "random",
    "exits": "exit codes",
    "gathered": "colocated",
    "guard": "error policy",
    "guarded": "with a policy",
    "guards": "error policies",
    "keeping": "gc or retention",
    "moment": "record context",
    "news": "asset events",
    "opened": "open",
    "place": "location, position, path or target",
    "placed": "source offsets or repartitioned",
    "places": "locations, positions, paths or targets",
    "placing": "repartition",
    "plain": "undeclared, values",
    "reach": "key pruning",
    "scope": "task context",
    "shuffled": "shuffle",
    "sides": "rows, pair",
}
"""Words that no class, function, parameter, variable or field has in its name."""

IN_MODULES = IN_NAMES | {
    "buckets": "diff partitions",
    "contents": "content hash",
    "cuts": "batch size or repartitions",
    "difference": "job diff",
    "emit": "output",
    "forms": "key types, codecs",
    "heads": "prefix operators",
    "inside": "path safety",
    "land": "ingest",
    "stage": "sub-topology or Parquet writer",
    "work": "task work",
}
"""Words that no module of the library has in its name."""

_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])")
_TEXT = re.compile(
    rf"(?<![A-Za-z])(?:(?P<word>{'|'.join(EVERYWHERE)})(?![a-z])|(?P<phrase>{'|'.join(PHRASES)}))", re.IGNORECASE
)


class Finding(NamedTuple):
    """A retired term: where it is, and what to say in its place."""

    line: int
    term: str
    word: str
    instead: str
    kind: str

    def text(self, path: str) -> str:
        """Return the finding as a message."""
        return f"{path}:{self.line}: {self.term!r} is retired ({self.kind}): say {self.instead!r}"


def in_text(text: str, first_line: int = 1) -> Iterator[Finding]:
    """Yield the terms in a page, message or comment."""
    for number, line in enumerate(text.splitlines(), first_line):
        for found in _TEXT.finditer(line):
            term = found[0].lower()
            instead = EVERYWHERE.get(term) or next(
                say for one, say in PHRASES.items() if re.match(one, term, re.IGNORECASE)
            )
            yield Finding(number, found[0], term, instead, "text")


def in_module_name(path: str) -> Iterator[Finding]:
    """Yield the terms in the name of a module, given by its path below the project."""
    terms = IN_MODULES if path.startswith("lib/") else IN_NAMES
    yield from _in_name(path.rpartition("/")[2].removesuffix(".py"), 1, "module", EVERYWHERE | terms)


def in_source(source: str) -> Iterator[Finding]:
    """Yield the terms in a module's literals, comments and names."""
    has_any = _TEXT.search(source)  # tokenizing is slow, and few files have a finding
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if has_any else ():
        if token.type in {tokenize.STRING, tokenize.COMMENT}:
            yield from in_text(token.string, token.start[0])
    for name, line, kind in sorted(set(_bound(ast.parse(source))), key=lambda one: one[1]):
        # The name of a test is a sentence.
        is_sentence = name.startswith("test_")
        yield from _in_name(name, line, kind, EVERYWHERE if is_sentence else EVERYWHERE | IN_NAMES)


def _in_name(name: str, line: int, kind: str, terms: Mapping[str, str]) -> Iterator[Finding]:
    for word in _WORD.findall(name):
        if instead := terms.get(word.lower()):
            yield Finding(line, name, word.lower(), instead, kind)


def _bound(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno, "class"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, "function"
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno, "variable"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno, "variable"
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno, "variable"
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, 1, "variable"
