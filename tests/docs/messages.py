"""The page of messages: for each code an example of its message, written by hand or taken from a run, and checked here.

An example that no longer fits its wording is replaced by the wording itself, so that whoever changes it reads the page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from string import Formatter

from tests.docs.blocks import DOCS
from tests.docs.markdown import GENERATED
from tests.docs.raised import Raised, raised

PAGE = DOCS / "reference/messages.md"
HEAD = f"""\
# Messages

Every message has a code, which stays the same if the wording changes. Ask for codes in scripts and alert rules, not for words.

A command prints the code of an error in brackets after its message. `--json` and logs have it as `code`, and in Python it is
`error.code`, beside `error.facts`. If a configuration file has several mistakes, the code is that of the first. Errors are listed
under the [exit code](exit-codes.md) of their command.

In `--json`, each finding of `rewindow status` and the verdict of a report have a field `code`. The codes of other messages are in
separate fields, which this table lists. If a field has a list of messages, the list of codes has the same order:

| messages in `--json` | their codes |
| --- | --- |
| `hints` of `run` | `hint_codes` |
| `warnings` of `land` | `warning_codes` |
| `waiting` of `land` | `waiting_code` |
| `orders` of `land` | `order_codes` |
| `undeclared` of `plan` | `undeclared_codes` |
| `reason` of `plan` and `run` | `reason_code` |
| `detail` of `ls` and `status`, whose parts are joined by semicolons | `detail_codes` |
| `headline` and `reasons` of `why --missing` | `headline_code`, `reason_codes` |
| `notes` of `why` | `note_codes` |

{GENERATED}"""
TITLES = {
    "FindingMessage": "Findings of `rewindow status`",
    "HintMessage": "Hints after a run",
    "ReasonMessage": "Reasons of `plan`, `run`, `land`, `ls` and `why`",
    "VerdictMessage": "The verdict of a report",
    "WarningMessage": "Warnings of a landing",
}
_ENTRY = re.compile(r"^\[([a-z0-9-]+)\] (.*(?:\n {4}.*)*)$", re.MULTILINE)


def page() -> str:
    """Return the text of the page."""
    known = examples(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    sections: dict[tuple[bool, bool, tuple[int, ...], str], list[str]] = defaultdict(list)
    for one in sorted(_messages(), key=lambda one: str(one.code)):
        example = known.get(str(one.code), "")
        text = example if fits(one, example) else wording(one)
        section = (bool(one.kind), len(one.exit_codes) != 1, one.exit_codes, one.kind)
        sections[section].append(f"[{one.code}] " + text.replace("\n", "\n    "))
    parts = [HEAD]
    for (_, _, exit_codes, kind), entries in sorted(sections.items()):
        title = TITLES[kind] if kind else _of_exit_codes(exit_codes)
        parts.append(f"\n## {title}\n\n```text\n" + "\n".join(entries) + "\n```\n")
    return "".join(parts)


def examples(text: str) -> dict[str, str]:
    """Return the examples of a page by their codes."""
    return {code: example.replace("\n    ", "\n") for code, example in _ENTRY.findall(text)}


def fits(message: Raised, example: str) -> bool:
    """Return whether an example is the message's wording, with values of its facts."""
    if not example or (message.shown and example == wording(message)):
        return False
    first, *others = _literals(message)
    if not example.startswith(first):
        return False
    if not others:
        return example == first
    at = len(first)
    for text in others[:-1]:  # a fact has any text, so the first place of each literal is as good as another
        at = example.find(text, at)
        if at < 0:
            return False
        at += len(text)
    return example.endswith(others[-1]) and len(example) - len(others[-1]) >= at


def wording(message: Raised) -> str:
    """Return a message's wording with the names of its facts in place of values."""
    parts = Formatter().parse(message.wording or "")
    return "".join(text + (f"<{field}>" if field else "") for text, field, _, _ in parts)


def _literals(message: Raised) -> list[str]:
    """Return the texts before, between and after the facts of a wording."""
    texts = [""]
    for text, field, _, _ in Formatter().parse(message.wording or ""):
        texts[-1] += text
        if field is not None:
            texts.append("")
    return texts


def _messages() -> list[Raised]:
    return [one for one in raised() if one.code is not None]


def _of_exit_codes(exit_codes: tuple[int, ...]) -> str:
    if len(exit_codes) == 1:
        return f"Exit code {exit_codes[0]}"
    shown = f"{', '.join(map(str, exit_codes[:-1]))} or {exit_codes[-1]}" if exit_codes else "of the cause"
    return f"Exit code {shown}, after what the system or Spark said"
