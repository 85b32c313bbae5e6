"""A report as one HTML page: the verdict, then a section for each question."""

from __future__ import annotations

from collections.abc import Iterator

from rewindow.report.expectations import expectations_section
from rewindow.report.facts import Level, Report
from rewindow.report.html import Html, tag, with_code
from rewindow.report.losses import dropped_section, lateness_section
from rewindow.report.outcome import changes_section, cost_section, diff_section, digests_section, runs_section
from rewindow.report.pending import clocks_section, stores_section, windows_section
from rewindow.report.style import STYLE
from rewindow.report.text import counted, number, share_of_records, to_the_second, where_results_wait

_WORDS = {Level.GOOD: "OK", Level.NOTE: "NOTE", Level.WARNING: "ATTENTION", Level.BAD: "REFUSED"}

SECTIONS = {
    "expectations": ("Expectations", expectations_section),
    "dropped": ("Records and drops", dropped_section),
    "lateness": ("Lateness", lateness_section),
    "windows": ("Open windows", windows_section),
    "clocks": ("Clocks", clocks_section),
    "stores": ("Stores", stores_section),
    "changes": ("What changed", changes_section),
    "diff": ("Branch comparison", diff_section),
    "cost": ("Cost", cost_section),
    "runs": ("Runs", runs_section),
    "digests": ("Digests", digests_section),
}
"""The sections of a page: the heading of each, and what makes its content, nothing if it has none."""


def page(report: Report) -> str:
    """Return the page. It needs no script, no font and no network."""
    made = {name: (heading, list(section(report))) for name, (heading, section) in SECTIONS.items()}
    shown = {name: one for name, one in made.items() if one[1]}
    links = [tag("a", heading, href=f"#{name}") for name, (heading, _) in shown.items()]
    sections = [
        tag("section", tag("h2", heading, id=f"{name}-heading"), content, id=name, aria_labelledby=f"{name}-heading")
        for name, (heading, content) in shown.items()
    ]
    title = f"{report.job} ({report.branch}): rewindow report"
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    main = tag("main", tag("nav", links, aria_label="Sections"), sections)
    body = tag("body", tag("header", _header(report)), main, tag("footer", _footer(report)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _header(report: Report) -> Iterator[Html]:
    headline, *sentences = report.verdict
    yield tag(
        "p",
        *("Job ", tag("strong", report.job), ", branch ", tag("strong", report.branch)),
        f", {report.selection}, as of {to_the_second(report.made_at_ms)}",
        css="what",
    )
    state = tag("span", _WORDS[headline.level], css="state")
    yield tag("h1", state, headline.text, css=headline.level.value)
    yield tag("dl", _cards(report), css="cards")
    yield tag("ul", [tag("li", with_code(one.text), css=one.level.value) for one in sentences], css="verdict")


def _cards(report: Report) -> Iterator[Html]:
    progress = report.progress
    dropped, nodes = sum(drop.records for drop in report.drops), {drop.where for drop in report.drops}
    is_one = progress.first_epoch == progress.last_epoch
    last = number(progress.last_epoch)
    epochs = f"epoch {last}" if is_one else f"epochs {number(progress.first_epoch)} to {last}"
    by = share_of_records(report.drops) if len(nodes) < 2 else f"in {len(nodes)} places"
    of_runs = "" if report.detailed_runs == progress.runs else f"in the last {number(report.detailed_runs)} runs"
    behind = counted(progress.waiting_records, "record") if progress.waiting_landings else "nothing waits"
    yield _card("Last run", report.runs[-1].run, f"committed {to_the_second(progress.committed_at_ms)}")
    yield _card("Runs", number(progress.runs), epochs)
    yield _card("Records in", number(progress.records), f"{number(progress.rows)} rows out")
    yield _card("Dropped", number(dropped), of_runs or by)
    yield _card("Landings behind", number(progress.waiting_landings), behind)
    yield _card("Results not final", number(report.open_windows.results), where_results_wait(report.open_windows))
    verified = report.verification
    word = "rows differ" if verified.differences else "yes" if verified.checked else "no"
    yield _card("Verified by replay", word, ", ".join(verified.checked) or "--verify replays")


def _card(name: str, value: str, more: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", more) if more else ""))


def _footer(report: Report) -> Iterator[Html]:
    yield tag(
        "p",
        f"Made by rewindow {report.version} at {to_the_second(report.made_at_ms)}. Times are in UTC. Feed {report.feed}; ledger ",
        tag("code", report.ledger or "none"),
        ".",
    )
