"""What a notebook draws: small tables and pictures, in which every text is escaped."""

from __future__ import annotations

from dataclasses import replace as replace_code
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

import rewindow
from tests.api.shop import edit, replace
from tests.refusals import refused

EVIL = "<script>alert('&')</script>"


def markup(value: object) -> str:
    """Return what a notebook shows, checked to be well-formed."""
    text = value._repr_html_()  # type: ignore[attr-defined]
    ET.fromstring(f"<div>{text}</div>")  # noqa: S314 - our own text
    return text


def texts(text: str) -> list[list[str]]:
    """Return the texts of a table, row by row."""
    root = ET.fromstring(f"<div>{text}</div>")  # noqa: S314 - our own text
    return [[one.text or "" for one in row] for row in root.iter("tr")]


def test_everything_that_a_project_returns_is_drawn(with_two_runs: rewindow.Project) -> None:
    project = with_two_runs
    edit(project, '        .where("amount > 0")\n', "")
    backfill = project.backfill("daily_orders", 1, branch="with-refunds")
    diff = project.diff("daily_orders", "with-refunds")
    assert texts(markup(project.jobs))[1][:3] == ["daily_orders", "broken", "4"]
    assert texts(markup(project.feeds))[1][:2] == ["orders", "fresh"]
    runs = texts(markup(project.runs("daily_orders")))
    assert runs[0] == ["run", "epochs", "records", "rows", "complete through", "final"]
    assert runs[1] == ["main/1", "1-3", "10", "5", "2026-01-07 18:45:00Z", ""]
    assert "Branch with-refunds of daily_orders starts at the beginning" in markup(backfill)
    assert ["daily-orders", "6", "1", "0", "0"] in texts(markup(diff))
    assert "customer=bob" in markup(diff)
    assert "main and with-refunds ran different code: f &lt; g" in markup(replace_code(diff, code=("f < g",)))
    assert "<svg " in markup(project.job("daily_orders"))
    assert markup(project.promote("daily_orders", "with-refunds")).startswith("<p ")


def test_rows_are_drawn_as_head_prints_them(with_two_runs: rewindow.Project) -> None:
    shown = markup(with_two_runs.output("daily-orders", run=1))
    assert "daily-orders of daily_orders as of main/1: 5 rows" in shown
    first = ["bob", "2026-01-05 00:00:00Z", "2026-01-06 00:00:00Z", "1", "40.0", "2026-01-05 11:02:00Z", "main/1"]
    assert texts(shown)[1] == first


def test_of_many_rows_the_first_are_drawn_and_of_too_many_none(
    with_two_runs: rewindow.Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewindow.app.api.rows._SHOWN", 3)
    shown = markup(with_two_runs.output("daily-orders"))
    assert "7 rows, of which the first 3 are shown" in shown
    assert len(texts(shown)) == 1 + 3
    monkeypatch.setattr("rewindow.app.api.rows._MOST_READ", 6)
    assert "up to 7 rows" in markup(with_two_runs.output("daily-orders"))


def test_markup_in_data_and_names_is_text(shop: rewindow.Project) -> None:
    path = shop.root / "data/orders/first_days.parquet"
    rows = pq.read_table(path)
    pq.write_table(rows.set_column(1, "customer", [[EVIL] * rows.num_rows]), path)
    edit(shop, '.where("amount > 0")', f'.where("amount > 0", name={EVIL!r})'.replace("'&'", "&"))
    name = EVIL.replace("'&'", "&")
    shop.land("orders")
    run = shop.run("daily_orders")
    for value in (run.output(), run.state("orders-per-day"), shop.job("daily_orders"), shop.runs("daily_orders")):
        assert "<script" not in markup(value)
    assert texts(markup(run.output()))[1][0] == EVIL
    assert name in [one.text for one in ET.fromstring(shop.job("daily_orders").topology.svg).iter() if one.text]  # noqa: S314


def test_a_report_is_drawn_in_a_frame_of_its_own(with_two_runs: rewindow.Project) -> None:
    frame = ET.fromstring(with_two_runs.report("daily_orders")._repr_html_())  # noqa: S314 - our own text
    assert (frame.tag, frame.get("sandbox")) == ("iframe", "")
    assert (frame.get("srcdoc") or "").startswith("<!doctype html>")


def test_a_job_that_is_broken_is_listed_and_hides_no_other(shop: rewindow.Project) -> None:
    replace(shop.root / "conf/jobs/daily_orders.yaml", "feed: orders", "feed: nobody")
    (entry,) = shop.jobs
    assert (entry.status, entry.exit_code) == ("broken", 78)
    assert texts(markup(shop.jobs))[1][1] == "broken"


def test_a_project_without_jobs_has_an_empty_list(tmp_path: Path) -> None:
    (tmp_path / "conf/targets").mkdir(parents=True)
    (tmp_path / "conf/targets/local.yaml").write_text("target: local\nwarehouse: warehouse\n")
    project = rewindow.Project.load(tmp_path)
    assert (list(project.jobs), repr(project.feeds)) == ([], "none")
    assert markup(project.jobs)


def test_a_drawing_is_written_to_a_file(landed: rewindow.Project, tmp_path: Path) -> None:
    topology = landed.job("daily_orders").topology
    assert topology.write(tmp_path / "new" / "job.svg").read_text() == topology.svg == topology._repr_svg_()
    with refused("written-file-is-folder"):
        topology.write(tmp_path)
