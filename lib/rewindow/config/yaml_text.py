"""Parse the text of one YAML file: without tags, aliases, merge keys or templates, and with the place of every key.

Keys are text, and so is a value that is not a whole number, ``true``, ``false`` or empty: PyYAML would read the version
``3.10`` as 3.1, the time ``1:30`` as 90, the number ``010`` as 8, and the key ``on`` as True.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from rewindow.config.yaml_errors import Mistake, Position, explain, position_of_character
from rewindow.errors import ConfigError

MAX_DEPTH = 20
_TEXT, _INTEGER = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int"
_AS_TEXT = {"tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp", _INTEGER}
_TYPOGRAPHIC = tuple("\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb")
_MERGE = "tag:yaml.org,2002:merge"


class Document(NamedTuple):
    """The content of a file: its values, the nodes that know their places, and what is wrong besides the syntax."""

    values: dict[str, Any]
    root: yaml.MappingNode
    mistakes: list[Mistake]


def parse(text: str, shown: str) -> Document:
    """Return the content of a file. ``shown`` is the file's name in messages.

    Raises `ConfigError` (78) with the line, unless the text is one YAML mapping of limited depth without aliases and tags.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(f"{shown} is empty: it needs lines like `key: value`")
        if not isinstance(root, yaml.MappingNode):
            found = Mistake(
                position_of(root, ()), "this is not a mapping of keys to values: write lines like `partitions: 8`"
            )
            raise ConfigError(found.told(shown))
        values = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(explain(error, text).told(shown)) from error
    except yaml.reader.ReaderError as error:
        position = position_of_character(text, error.position)
        raise ConfigError(
            Mistake(position, f"the control character {error.character:#04x} is not YAML: remove it").told(shown)
        ) from error
    return Document(values, root, list(_mistakes(root, ())))


def position_of(root: yaml.Node, keys: Sequence[int | str], *, at_key: bool = False) -> Position:
    """Return where a value begins, or its key if it is a block of lines, or if ``at_key``. Falls back to the block around it."""
    node, key, is_flow = root, None, False
    for step in keys:
        following = _below(node, step)
        if following is None:
            break
        is_flow = is_flow or (isinstance(node, yaml.CollectionNode) and bool(node.flow_style))
        key, node = following
    mark = node.start_mark
    if key is not None and (at_key or (isinstance(node, yaml.CollectionNode) and not node.flow_style)):
        mark = key.start_mark
    return Position(mark.line + 1, mark.column + 1 if is_flow else None)


def _below(node: yaml.Node, step: int | str) -> tuple[yaml.Node | None, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    return None


def _mistakes(node: yaml.Node, path: tuple[str, ...]) -> Iterator[Mistake]:
    """Yield duplicate keys, templates and typographic quotes, which `construct_document` lets pass."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in seen:
                text = f"duplicate key {name!r}, which line {seen[name]} has already: remove one of them"
                yield Mistake(Position(line, None), text)
            seen.setdefault(name, line)
            yield from _mistakes(key, path)
            yield from _mistakes(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _mistakes(item, path)
    elif "{{" in node.value:
        named = ".".join(path) or "a key"
        text = f"{named} contains a template ({{{{), which is not rendered here: write the value itself"
        yield Mistake(Position(node.start_mark.line + 1, None), text)
    elif isinstance(node, yaml.ScalarNode) and node.style is None and node.value[:1] in _TYPOGRAPHIC:
        text = f"{'.'.join(path)} begins with the typographic quote {node.value[0]}: use \" or '"
        yield Mistake(Position(node.start_mark.line + 1, None), text)


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses aliases (which can expand without bound), tags, merge keys and deep nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise self._refusal("aliases (*name) are not supported: write the value out")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._refusal(f"more than {MAX_DEPTH} levels deep: is this the right file?")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def _refusal(self, problem: str) -> yaml.MarkedYAMLError:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's
        return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  # PyYAML's
        del deep
        values = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                message = "merge keys (<<) are not supported: write the keys out"
                raise yaml.MarkedYAMLError(problem=message, problem_mark=key.start_mark)
            if not isinstance(key, yaml.ScalarNode) or key.tag not in self.yaml_constructors:
                message = (
                    "a key must be text. A value that begins with { or [ needs quotes; a template is not rendered here"
                )
                raise yaml.MarkedYAMLError(problem=message, problem_mark=key.start_mark)
            values[str(key.value)] = self.construct_object(value, deep=True)
        return values


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _AS_TEXT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INTEGER, re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})$"), list("-+0123456789"))
