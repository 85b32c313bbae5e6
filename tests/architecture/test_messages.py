"""Every error names its message by a code of its own, with facts that its wording shows."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import rewindow
from rewindow import errors

_PACKAGE = Path(rewindow.__file__).parent
_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_KINDS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.RewindowError)
} | {"BadRowsError", "ReadsError", "failed_io"}


def test_each_error_has_a_code_a_wording_and_the_facts_that_it_shows() -> None:
    wrong = []
    for where, call in _errors():
        given = call.args[1:] if call.func.id == "failed_io" else call.args  # type: ignore[attr-defined]
        texts = [part.value if isinstance(part, ast.Constant) else None for part in given]
        if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
            wrong.append(f"{where}: write a code and a wording, both literal")
            continue
        code, wording = map(str, texts)
        if not _CODE.fullmatch(code):
            wrong.append(f"{where}: {code!r} is no code like `topic-written-twice`")
        shown = {field for _, field, _, _ in Formatter().parse(wording) if field}
        if shown != (facts := {str(fact.arg) for fact in call.keywords}):
            wrong.append(f"{where}: facts and wording differ in {sorted(shown ^ facts)}")
    assert not wrong, "\n".join(wrong)


def test_a_code_is_used_in_one_place() -> None:
    codes = Counter(part.value for _, call in _errors() for part in call.args[:2] if _is_code(part))
    assert not [code for code, times in codes.items() if times > 1]


def _is_code(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and isinstance(part.value, str) and bool(_CODE.fullmatch(part.value))


def _errors() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.parent == _PACKAGE and path.name == "errors.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _KINDS:
                yield f"{path.relative_to(_PACKAGE)}:{node.lineno}", node
