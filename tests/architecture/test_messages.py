"""Every error names its message by a code of its own, with facts that its wording shows."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.messages import PAGE, examples, fits
from tests.docs.raised import raised

_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")


def test_each_error_has_a_code_a_wording_and_the_facts_that_it_shows() -> None:
    wrong = []
    for one in raised():
        if one.code is None or one.wording is None:
            wrong.append(f"{one.where}: write a code and a wording, both literal")
        elif not _CODE.fullmatch(one.code):
            wrong.append(f"{one.where}: {one.code!r} is no code like `topic-written-twice`")
        elif one.facts != one.shown:
            wrong.append(f"{one.where}: facts and wording differ in {sorted(one.facts ^ one.shown)}")
    assert not wrong, "\n".join(wrong)


def test_a_code_is_used_in_one_place() -> None:
    uses = Counter(one.code for one in raised())
    assert not [code for code, times in uses.items() if times > 1]


def test_the_page_of_messages_has_an_example_of_each() -> None:
    on_page = examples(PAGE.read_text(encoding="utf-8"))
    without = [one.code for one in raised() if one.code and not fits(one, on_page.get(one.code, ""))]
    assert not without, "write an example of each to docs/reference/messages.md, then python -m tests.docs"
