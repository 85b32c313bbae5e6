"""Say in a sentence what is wrong with the syntax of a YAML file, and in which line: PyYAML speaks of tokens and blocks."""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

_ODD_SPACE = re.compile("[\u00a0\u2000-\u200b\u202f\u205f\u3000\ufeff]")
"""Spaces that look like one and are none to YAML."""


class Position(NamedTuple):
    """A place in a file, counted from 1. The column is None where the line alone says it."""

    line: int
    column: int | None

    def __str__(self) -> str:
        """Return the place as messages show it."""
        return f"line {self.line}" if self.column is None else f"line {self.line}, column {self.column}"


class Mistake(NamedTuple):
    """What is wrong at a place of a file, and how to fix it."""

    position: Position
    text: str

    def told(self, shown: str) -> str:
        """Return the mistake in one line. ``shown`` is the file's name."""
        return f"{shown}, {self.position}: {self.text}"


def position_of_character(text: str, index: int) -> Position:
    """Return the place of a character."""
    before = text[:index]
    return Position(before.count("\n") + 1, index - before.rfind("\n"))


def explain(error: yaml.MarkedYAMLError, text: str) -> Mistake:
    """Return the mistake behind an error of PyYAML."""
    problem, context = str(error.problem or ""), str(error.context or "")
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Mistake(Position(1, None), problem or context)
    here = Position(mark.line + 1, mark.column + 1)
    begin = error.context_mark and Position(error.context_mark.line + 1, error.context_mark.column + 1)
    lines = [*text.splitlines(), ""]
    line = lines[min(mark.line, len(lines) - 1)]

    if found := _ODD_SPACE.search(line) or (begin and _ODD_SPACE.search(lines[begin.line - 1])):
        number = here.line if found.string is line else begin.line if begin else here.line
        where = Position(number, found.start() + 1)
        return Mistake(where, f"an invisible character U+{ord(found[0]):04X} that is no space: replace it with a space")
    if "found character '\\t'" in problem:
        return Mistake(here, "a tab, which YAML does not allow here: use spaces")
    if found := re.match(r"found character '(.+)' that cannot start any token", problem):
        return Mistake(here, f"a value cannot begin with {found[1]}: put it in quotes")
    if begin and context in {"while scanning an alias", "while scanning an anchor"}:
        return Mistake(begin, f"a value cannot begin with {'*' if 'alias' in context else '&'}: put it in quotes")
    if begin and problem == "could not find expected ':'":
        return Mistake(begin._replace(column=None), "this line is no `key: value`: write the key, a colon and a space")
    if problem == "mapping values are not allowed here":
        if re.search(r":\s", line[: mark.column]):
            fix = "a second `key: value` in one line: start a new line, or put the value in quotes"
            return Mistake(here, fix)
        fix = "this key is not expected here: the line above has no colon, or this line is indented too far"
        return Mistake(here._replace(column=None), fix)
    if found := re.fullmatch(r"expected <block end>, but found '(.+)'", problem):
        return Mistake(here, _no_block_end(found[1]))
    if begin and (found := re.match(r"expected ',' or '([]}])'", problem)):
        bracket = "[" if found[1] == "]" else "{"
        return Mistake(here, f"no , or {found[1]} before this, after the {bracket} of {begin}: add the missing one")
    if begin and context.startswith("while parsing a flow"):
        return Mistake(begin, "this bracket is not closed: add the missing one, or put the value in quotes")
    if begin and problem == "found unexpected end of stream":
        return Mistake(begin, "the quote that opens here is not closed: close it")
    if problem == "but found another document":
        return Mistake(here._replace(column=None), "a second document begins here (---): keep one in a file")
    if found := re.match(r"could not determine a constructor for the tag '(.+)'", problem):
        tag = found[1].replace("tag:yaml.org,2002:", "!!")
        return Mistake(here, f"the tag {tag} is not supported: remove it, or put the whole value in quotes")
    if found := re.match(r"found unknown escape character '(.+)'", problem):
        return Mistake(here, f"\\{found[1]} means nothing in double quotes: use single quotes, or \\\\")
    if context == "while scanning a block scalar":
        return Mistake(begin or here, "a value cannot begin with > or |: put it in quotes")
    return Mistake(here, problem)


def _no_block_end(found: str) -> str:
    if found in {"}", "]"}:
        return f"a {found} that nothing opens: remove it"
    if found == "<scalar>":
        return "text behind the end of a value: put the whole value in quotes, or close the quote that opens above"
    if found == "-":
        return "a list item (- ...) between keys: indent it below its key, or write a key"
    if found in {"?", "<block mapping start>"}:
        return "this line is not aligned with the lines above: give all keys of a block the same indentation"
    return f"{found} is not expected here: put the value in quotes"
