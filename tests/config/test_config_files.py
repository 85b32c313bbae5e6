"""What may be a configuration file: a regular file of the project. And names that differ only in case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rewindow.config.job import nested
from rewindow.config.load import load_feed, load_job
from rewindow.tables.shared.paths import output_path
from tests.config.written import FEED, LOW_ACTIVITY, write
from tests.refusals import containing, refused

USERS = "root:x:0:0\nroot:x:0:1\n"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, "jobs/other.yaml", LOW_ACTIVITY)
    os.mkfifo(tmp_path / "conf" / "jobs" / "low_activity.yaml")
    with refused("config-file-not-regular", file="conf/jobs/low_activity.yaml"):
        load_job(tmp_path, "low_activity")


@pytest.mark.parametrize("link", ["file", "folder"])
def test_a_link_out_of_the_project_is_refused_without_showing_its_target(tmp_path: Path, link: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (outside / "activity.yaml").write_text(USERS)
    (root / "conf").mkdir(parents=True)
    if link == "folder":
        (root / "conf" / "feeds").symlink_to(outside)
    else:
        (root / "conf" / "feeds").mkdir()
        (root / "conf" / "feeds" / "activity.yaml").symlink_to(outside / "activity.yaml")
    with refused("config-file-outside-project", file="conf/feeds/activity.yaml"):
        load_feed(root, "activity")


def test_links_within_the_project_and_a_linked_conf_folder_are_read(tmp_path: Path) -> None:
    write(tmp_path / "shared", "feeds/v1.yaml", FEED)
    (tmp_path / "shared" / "conf" / "feeds" / "activity.yaml").symlink_to("v1.yaml")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "conf").symlink_to(tmp_path / "shared" / "conf")
    assert load_feed(tmp_path / "project", "activity").feed == "activity"


@pytest.mark.parametrize("table", ["REWINDOW.runs", "Logs.x", "STATE", "iNternal.a.b"])
def test_a_reserved_name_is_refused_in_any_case(tmp_path: Path, table: str) -> None:
    write(tmp_path, "jobs/low_activity.yaml", LOW_ACTIVITY.replace("alerts.low_activity", table))
    with refused("config-value-invalid", problem=containing(f"{table!r} uses a name that rewindow reserves")):
        load_job(tmp_path, "low_activity")
    with refused("table-name-reserved"):
        output_path(table)


def test_tables_that_differ_only_in_case_are_refused() -> None:
    assert "differ only in case" in (nested(["shop.Orders", "shop.orders"]) or "")
    assert "inside the folder" in (nested(["shop.Orders", "SHOP.orders.late"]) or "")
    assert nested(["shop.orders", "shop.orders_late"]) is None


@pytest.mark.parametrize("jobs", [("low_activity",), ("low_activity", "second")])
def test_a_feed_that_reads_what_is_made_from_it_is_refused(tmp_path: Path, jobs: tuple[str, ...]) -> None:
    """Each run would add epochs to land, and each landing records to run."""
    feeds = ["activity", *(f"of_{job}" for job in jobs[1:])]
    for number, (job, feed) in enumerate(zip(jobs, feeds, strict=True)):
        output = f"{{source: {{job: {job}, output: a}}, key: u, timestamp: _timestamp}}"
        reads = feeds[(number + 1) % len(feeds)]
        write(tmp_path, f"feeds/{feed}.yaml", f"feed: {feed}\npartitions: 2\nlogs: {{a: {output}}}\n")
        text = LOW_ACTIVITY.replace("job: low_activity", f"job: {job}").replace("feed: activity", f"feed: {reads}")
        write(tmp_path, f"jobs/{job}.yaml", text)
    for feed in feeds:
        with refused("feed-reads-itself", feed=feed):
            load_feed(tmp_path, feed)
    write(tmp_path, "feeds/activity.yaml", FEED)
    assert all(load_feed(tmp_path, feed) for feed in feeds)
