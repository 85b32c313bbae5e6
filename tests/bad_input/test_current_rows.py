"""Deletions in an output table are rows of nulls; `head --current` shows the rows that are left."""

from __future__ import annotations

import random

import pytest

from rewindow.app.api.project import Project
from tests.bad_input.scene import Bench
from tests.bad_input.test_recorded_topics import FEED, JOB, T0, Click, record

CODE = """\
from rewindow import StreamsBuilder


def build_topology():
    builder = StreamsBuilder()
    builder.table("clicks", store="pages").to_stream().to("windows")
    return builder.build()
"""


@pytest.fixture
def pages(new_shop: Bench) -> Bench:
    feed = FEED.replace("partitions: 1", "partitions: 3") % "order: file, value: page, "
    new_shop.write("conf/feeds/clicks.yaml", feed)
    new_shop.write("conf/jobs/windows.yaml", JOB)
    new_shop.write("jobs/windows.py", CODE)
    return new_shop


def test_the_last_rows_of_keys_that_are_not_deleted_are_shown(pages: Bench) -> None:
    rng = random.Random(11)
    updates: list[Click] = [
        (rng.choice("abcdefgh"), T0 + rng.randrange(90), rng.choice(["/x", "/y", ""])) for _ in range(60)
    ]
    for number in range(3):
        record(pages, str(number), updates[20 * number : 20 * number + 20])
        pages.done("land clicks", "run windows")
    left = {user: page for user, page in {user: page for user, _, page in updates}.items() if page}
    assert 0 < len(left) < 8
    (head,) = pages.json("head windows --current -n 100")["tables"]
    assert ({row["user"]: row["page"] for row in head["rows"]}, head["count"]) == (left, len(left))
    (last,) = pages.json("head windows --current -n 2 --last")["tables"]
    assert last["rows"] == head["rows"][-2:]
    with pages.code_is_imported():
        found = Project.load(str(pages.root)).output("windows").current()
        assert {row["user"]: row["page"] for row in found.to_pylist()} == left
        first = Project.load(str(pages.root)).output("windows", run=1).current().to_pylist()
    assert {row["user"]: row["page"] for row in first} == {
        user: page for user, page in {user: page for user, _, page in updates[:20]}.items() if page
    }


def test_only_published_rows_of_outputs_have_a_current_state(pages: Bench) -> None:
    record(pages, "0", [("a", T0, "/x")])
    pages.done("land clicks", "run windows")
    pages.refuses("head rewindow.quarantine --current", "current-option-misplaced")
    pages.refuses("head windows --held --current", "current-option-misplaced")
