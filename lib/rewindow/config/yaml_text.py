"""Parse the text of one YAML file, and find where each key is and what is wrong.

Tags, aliases, merge keys and templates are refused. Keys are text. A value is text, too, unless it is a whole number, ``true``,
``false`` or empty. PyYAML by itself would read the version ``3.10`` as 3.1, the time ``1:30`` as 90, the number ``010`` as 8,
and the key ``on`` as True.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from rewindow.config.field_types import MisfitError
from rewindow.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MAX_DEPTH = 20
_INTEGER = "tag:yaml.org,2002:int"
_AS_TEXT = {"tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp", _INTEGER}
_TYPOGRAPHIC = tuple("\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb")
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses aliases (which can expand without bound), tags, merge keys and deep nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise self._refusal("aliases (*name) are not supported: write the value out")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._refusal(f"more than {_MAX_DEPTH} levels deep: is this the right file?")
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
_ODD_SPACE = re.compile("[\u00a0\u2000-\u200b\u202f\u205f\u3000\ufeff]")
"""Matches characters that look like a space, but are not a space in YAML."""


class Position(NamedTuple):
    """A place in a file: line and column, both from 1. The column is None if the line is enough."""

    line: int
    column: int | None

    def __str__(self) -> str:
        """Return the place as messages show it."""
        return f"line {self.line}" if self.column is None else f"line {self.line}, column {self.column}"


class Mistake(NamedTuple):
    """A mistake: its place in a file, and the error with the advice how to fix it."""

    position: Position
    error: ConfigError


class Document(NamedTuple):
    """The content of a file: its values, its nodes (with their positions), and its mistakes other than syntax errors."""

    values: dict[str, Any]
    root: yaml.MappingNode
    mistakes: list[Mistake]


def parse(text: str, shown: str) -> Document:
    """Return the content of a file. ``shown`` is the file's name in messages.

    The text must be one YAML mapping of limited depth without aliases and tags. Otherwise, raises `ConfigError` (78) with the
    line.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError("yaml-file-empty", "{file} is empty: it needs lines like `key: value`", file=shown)
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(
                "yaml-file-not-mapping",
                "{file}, {position}: this is not a mapping of keys to values: write lines like `partitions: 8`",
                file=shown,
                position=str(position_of(root, ())),
            )
        values = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        position, reason = _explain(error, text)
        raise ConfigError(
            "yaml-syntax-wrong",
            "{file}, {position}: {reason}",
            file=shown,
            position=str(position),
            reason=reason,
        ) from error
    except yaml.reader.ReaderError as error:
        raise ConfigError(
            "control-character-in-yaml",
            "{file}, {position}: the control character {character:#04x} is not YAML: remove it",
            file=shown,
            position=str(_position_of_character(text, error.position)),
            character=error.character,
        ) from error
    return Document(values, root, list(_mistakes(root, ())))


def position_of(root: yaml.Node, keys: Sequence[int | str], *, at_key: bool = False) -> Position:
    """Return the place of the value at the path ``keys``.

    With ``at_key``, and for a mapping or list over several lines, return the place of its key instead. If there is no such
    value, return the place of the innermost block on the path to it.
    """
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
    """Yield duplicate keys, templates and typographic quotes, which `construct_document` accepts."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in seen:
                error = ConfigError(
                    "config-key-duplicate",
                    "duplicate key {key!r}, which line {line} has already: remove one of them",
                    key=name,
                    line=seen[name],
                )
                yield Mistake(Position(line, None), error)
            seen.setdefault(name, line)
            yield from _mistakes(key, path)
            yield from _mistakes(value, (*path, name))
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _mistakes(item, path)
    elif "{{" in node.value:
        error = ConfigError(
            "config-template-not-rendered",
            "{key} contains a template ({{{{), which is not rendered here: write the value itself",
            key=".".join(path) or "a key",
        )
        yield Mistake(Position(node.start_mark.line + 1, None), error)
    elif isinstance(node, yaml.ScalarNode) and node.style is None and node.value[:1] in _TYPOGRAPHIC:
        error = ConfigError(
            "config-quote-typographic",
            "{key} begins with the typographic quote {quote}: use \" or '",
            key=".".join(path),
            quote=node.value[0],
        )
        yield Mistake(Position(node.start_mark.line + 1, None), error)


def _position_of_character(text: str, index: int) -> Position:
    """Return the place of a character."""
    before = text[:index]
    return Position(before.count("\n") + 1, index - before.rfind("\n"))


def _explain(error: yaml.MarkedYAMLError, text: str) -> tuple[Position, str]:
    """Return the place of a syntax error that PyYAML raised, and how to fix it."""
    problem, context = str(error.problem or ""), str(error.context or "")
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Position(1, None), problem or context
    here = Position(mark.line + 1, mark.column + 1)
    begin = error.context_mark and Position(error.context_mark.line + 1, error.context_mark.column + 1)
    lines = [*text.splitlines(), ""]
    line = lines[min(mark.line, len(lines) - 1)]

    if found := _ODD_SPACE.search(line) or (begin and _ODD_SPACE.search(lines[begin.line - 1])):
        number = here.line if found.string is line else begin.line if begin else here.line
        where = Position(number, found.start() + 1)
        return where, f"an invisible character U+{ord(found[0]):04X} that is not a space: replace it with a space"
    if "found character '\\t'" in problem:
        return here, "a tab, which YAML does not allow here: use spaces"
    if found := re.match(r"found character '(.+)' that cannot start any token", problem):
        return here, f"a value cannot begin with {found[1]}: put it in quotes"
    if begin and context in {"while scanning an alias", "while scanning an anchor"}:
        return begin, f"a value cannot begin with {'*' if 'alias' in context else '&'}: put it in quotes"
    if begin and problem == "could not find expected ':'":
        return begin._replace(column=None), "this line is not a `key: value`: write the key, a colon and a space"
    if problem == "mapping values are not allowed here":
        if re.search(r":\s", line[: mark.column]):
            fix = "a second `key: value` in one line: start a new line, or put the value in quotes"
            return here, fix
        fix = "this key is not expected here: the line above has no colon, or this line is indented too far"
        return here._replace(column=None), fix
    if found := re.fullmatch(r"expected <block end>, but found '(.+)'", problem):
        return here, _no_block_end(found[1])
    if begin and (found := re.match(r"expected ',' or '([]}])'", problem)):
        bracket = "[" if found[1] == "]" else "{"
        return here, f"no , or {found[1]} before this, after the {bracket} of {begin}: add the missing one"
    if begin and context.startswith("while parsing a flow"):
        return begin, "this bracket is not closed: add the missing one, or put the value in quotes"
    if begin and problem == "found unexpected end of stream":
        return begin, "the quote that opens here is not closed: close it"
    if problem == "but found another document":
        return here._replace(column=None), "a second document begins here (---): keep one in a file"
    if found := re.match(r"could not determine a constructor for the tag '(.+)'", problem):
        tag = found[1].replace("tag:yaml.org,2002:", "!!")
        return here, f"the tag {tag} is not supported: remove it, or put the whole value in quotes"
    if found := re.match(r"found unknown escape character '(.+)'", problem):
        return here, f"\\{found[1]} means nothing in double quotes: use single quotes, or \\\\"
    if context == "while scanning a block scalar":
        return begin or here, "a value cannot begin with > or |: put it in quotes"
    return here, problem


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


_Loader.add_implicit_resolver(_INTEGER, re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})$"), list("-+0123456789"))


_NUMBER = re.compile(r"0|[1-9][0-9]*")
_Keys = tuple[int | str, ...]

_TYPES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "string_type": "text",
    "list_type": "a list, like [a, b]",
    "dict_type": "a block of keys, one `key: value` in a line",
    "model_type": "a block of keys, one `key: value` in a line",
}


def mistakes_of(error: ValidationError, model: type[BaseModel], document: Document) -> Iterator[Mistake]:
    """Yield what is wrong with a file that does not fit a model."""
    details = error.errors(include_url=False)
    meant = {
        (*where[:-1], nearest(str(where[-1]), _known_keys(model, where[:-1])))
        for where in (detail["loc"] for detail in details if detail["type"] == "extra_forbidden")
    }
    for detail in details:
        where = tuple(detail["loc"])
        if detail["type"] == "missing" and where in meant:
            # The key is missing only because it was misspelt. The misspelt key is reported instead.
            continue
        where, at_key = (where[:-1], True) if where[-1:] == ("[key]",) else (where, False)
        cause = detail.get("ctx", {}).get("error")
        exactly = (*where, *cause.keys) if isinstance(cause, MisfitError) else where
        position = position_of(
            document.root, exactly, at_key=at_key or detail["type"] in {"extra_forbidden", "missing"}
        )
        yield Mistake(position, _error(detail, where, model))


def nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that is most similar to a misspelt word; None if no known word is similar."""
    lower = {name.lower(): name for name in reversed(known)}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), lower, n=1) or difflib.get_close_matches(
        word.lower(), lower, n=1
    )
    return lower[close[0]] if close else None


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return ``did you mean `x`? `` with the most similar known word; ``""`` if no known word is similar."""
    near = nearest(word, known)
    return f"did you mean `{near}`? " if near else ""


def _error(detail: ErrorDetails, where: _Keys, model: type[BaseModel]) -> ConfigError:
    """Return the error of one mistake.

    It shows the value only if the message is one of `field_types`, so that no secret is printed.
    """
    key = ".".join(str(step) for step in where)
    kind, context, given = detail["type"], detail.get("ctx", {}), detail.get("input")
    if kind == "extra_forbidden":
        return _unknown_key(key, where, model)
    if kind == "missing":
        return ConfigError("config-key-missing", "{key} is missing: add it", key=key)
    if kind == "literal_error":
        words = [word for word in context["expected"].replace(" or ", ", ").replace("'", "").split(", ") if word]
        hint = did_you_mean(given, words).strip() if isinstance(given, str) else ""
        return ConfigError(
            "config-value-not-allowed",
            "{key} must be {allowed}{hint}",
            key=key,
            allowed=context["expected"],
            hint=f": {hint}" if hint else "",
        )
    if given is None and kind != "value_error":
        is_block = kind in {"dict_type", "model_type"}
        return ConfigError(
            "config-value-empty",
            "{key} is empty: write its {what}, or remove it",
            key=key,
            what="keys below it, indented" if is_block else "value after the colon",
        )
    if kind == "too_short":
        return ConfigError("config-items-missing", "{key} must not be empty", key=key)
    if kind in _TYPES:
        is_quoted = kind == "int_type" and isinstance(given, str) and _NUMBER.fullmatch(given)
        return ConfigError(
            "config-type-wrong",
            "{key} must be {type}{fix}",
            key=key,
            type=_TYPES[kind],
            fix=": remove the quotes" if is_quoted else "",
        )
    if kind in {"greater_than_equal", "less_than_equal"}:
        low = "ge" in context
        return ConfigError(
            "config-number-out-of-range",
            "{key} must be at {bound} {limit:,}",
            key=key,
            bound="least" if low else "most",
            limit=context["ge" if low else "le"],
        )
    cause = context.get("error", detail["msg"])
    if isinstance(cause, MisfitError) or not key:
        block = f"{key}: " if key else ""
        return ConfigError("config-values-conflict", "{block}{problem}", block=block, problem=str(cause))
    return ConfigError("config-value-invalid", "{key}: {problem}", key=key, problem=str(cause))


_ELSEWHERE = {"spark": "Spark's settings belong to the target, conf/targets/NAME.yaml. "}


def _unknown_key(key: str, where: _Keys, model: type[BaseModel]) -> ConfigError:
    word, known = str(where[-1]), _known_keys(model, where[:-1])
    hint = _ELSEWHERE.get(word, "") or did_you_mean(word, known)
    others = () if hint else [".".join(path) for path in _paths(model, ()) if path[-1] == word]
    fix = f"{hint}Known keys: {', '.join(known)}"
    if others:
        fix = f"it belongs to another block, as {' or '.join(others)}. {fix}"
    if word.partition(":")[0] in known:
        fix = "write a space after the colon"
    return ConfigError(
        "config-key-unknown",
        "{key} is not a known key{here}: {fix}",
        key=key,
        here=" here" if others else "",
        fix=fix,
    )


def _known_keys(model: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """Return the keys that a file may have below the path ``where``, as written in YAML."""
    inner: Any = model
    for step in where:
        inner = _step(inner, str(step))
    found = _model(inner)
    return list(_fields(found)) if found else []


def _step(annotation: Any, step: str) -> Any:
    found = _model(annotation)
    if found is not None:
        return _fields(found).get(step)
    return get_args(annotation)[-1] if get_origin(annotation) in (dict, list) else None


def _model(annotation: Any) -> type[BaseModel] | None:
    parts = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _paths(annotation: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all keys below a model. A mapping's key is written in capitals, as in messages."""
    found = _model(annotation)
    if found is None:
        if (inner := _step(annotation, "")) is not None:
            yield from _paths(inner, path if get_origin(annotation) is list else (*path, "NAME"))
        return
    for name, below in _fields(found).items():
        yield (*path, name)
        yield from _paths(below, (*path, name))
