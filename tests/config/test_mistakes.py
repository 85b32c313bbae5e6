"""What a user reads about a mistake in a YAML file: file and line, what is wrong, and the word that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.config.load import load_feed, load_job, load_target
from rewindow.errors import ConfigError
from tests.config.written import write
from tests.refusals import containing, refused

FEED = """\
feed: orders
partitions: 4
logs:
  orders:
    source: {path: data/orders, format: csv, options: {header: true}}
    key: customer
    timestamp: ordered_at
    arrived_at: received_at
landing:
  every: 1h
"""
JOB = """\
job: totals
topology: jobs.totals:build
feed: orders
outputs:
  totals: {table: shop.totals}
semantics:
  stream_time: max
on_error:
  slip: fail
"""
TARGET = "target: local\nwarehouse: warehouse\n"


def error_of(tmp_path: Path, text: str) -> ConfigError:
    kind, load = {
        "feed": ("feeds/orders", load_feed),
        "job:": ("jobs/totals", load_job),
        "targ": ("targets/local", load_target),
    }[text[:4]]
    write(tmp_path, f"{kind}.yaml", text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, kind.partition("/")[2])
    return caught.value


Case = tuple[str, str, str, str, dict[str, object]]
UNKNOWN, TYPE, EMPTY = "config-key-unknown", "config-type-wrong", "config-value-empty"
KEYS: dict[str, Case] = {
    "a key of a log": ("arrived_at:", "arived_at:", "line 8", UNKNOWN, {"fix": containing("`arrived_at`")}),
    "a hyphen": ("arrived_at:", "arrived-at:", "line 8", UNKNOWN, {"fix": containing("`arrived_at`")}),
    "capitals": ("partitions:", "Partitions:", "line 2", UNKNOWN, {"fix": containing("`partitions`")}),
    "camel case": ("arrived_at:", "arrivedAt:", "line 8", UNKNOWN, {"fix": containing("`arrived_at`")}),
    "a key in braces": ("format: csv", "fromat: csv", "line 5, column 33", UNKNOWN, {"fix": containing("`format`")}),
    "a key of another block": ("landing:\n  every: 1h", "every: 1h", "line 9", UNKNOWN, {"here": " here"}),
    "a key without its block": (
        "feed: orders",
        "feed: orders\ntimestamp: t",
        "line 2",
        UNKNOWN,
        {"fix": containing("logs.NAME.timestamp")},
    ),
    "no space after the colon": (
        "{header: true}",
        "{header: true}, copies:land",
        "line 5, column 71",
        UNKNOWN,
        {"fix": "write a space after the colon"},
    ),
    "a missing key": ("    key: customer\n", "", "line 4", "config-key-missing", {"key": "logs.orders.key"}),
    "a duplicate key": ("landing:", "partitions: 8\nlanding:", "line 9", "config-key-duplicate", {"line": 2}),
    "a topic": ("  orders:\n", "  or/ders:\n", "line 4", "config-value-invalid", {"key": "logs.or/ders"}),
}
VALUES: dict[str, Case] = {
    "a format": ("csv", "cvs", "line 5, column 41", "config-value-not-allowed", {"hint": ": did you mean `csv`?"}),
    "a number": ("partitions: 4", "partitions: four", "line 2", TYPE, {"key": "partitions"}),
    "a number in quotes": ("partitions: 4", 'partitions: "4"', "line 2", TYPE, {"fix": ": remove the quotes"}),
    "an octal number": ("partitions: 4", "partitions: 010", "line 2", TYPE, {"fix": ""}),
    "a word for true": ("key: customer", "key: yes", "line 6", "config-value-invalid", {"key": "logs.orders.key"}),
    "an empty value": ("partitions: 4", "partitions:", "line 2", EMPTY, {"key": "partitions"}),
    "an empty text": ("timestamp: ordered_at", "timestamp:", "line 7", "config-value-invalid", {}),
    "an empty block": ("  every: 1h\n", "", "line 9", EMPTY, {"key": "landing", "what": containing("keys below")}),
    "a list for a block": ("  every: 1h", "  - every: 1h", "line 9", TYPE, {"type": containing("a block of keys")}),
    "a text for a block": ("landing:\n  every: 1h", "landing: hourly", "line 9", TYPE, {"key": "landing"}),
    "no unit": ("  every: 1h", "  every: 60", "line 10", "config-value-invalid", {"key": "landing.every"}),
    "minutes and seconds": ("landing:", "lag: 1:30\nlanding:", "line 9", "config-value-invalid", {"key": "lag"}),
    "what does not fit together": (
        "    arrived_at: received_at\n",
        "",
        "line 9",
        "config-values-conflict",
        {"problem": containing("`arrived_at: COLUMN`")},
    ),
}
S = "yaml-syntax-wrong"
SYNTAX: dict[str, Case] = {
    "a line indented too little": ("    timestamp:", "   timestamp:", "line 7, column 4", S, {}),
    "a line indented too far": ("    timestamp:", "     timestamp:", "line 7", S, {}),
    "a block that is not indented": ("  orders:", "orders:", "line 3", EMPTY, {"key": "logs"}),
    "a tab as indentation": ("    key", "\tkey", "line 6, column 1", S, {"reason": containing("a tab")}),
    "a tab behind a colon": ("key: customer", "key:\tcustomer", "line 6, column 9", S, {}),
    "a list for a block": ("  orders:\n", "  - orders:\n", "line 3", TYPE, {"key": "logs"}),
    "no colon": ("partitions: 4", "partitions 4", "line 2", S, {}),
    "no space behind a colon": ("partitions: 4", "partitions:4", "line 2", S, {}),
    "no space in braces": ("path: data/orders", "path:data/orders", "line 5, column 14", UNKNOWN, {}),
    "no comma in braces": ("orders, format", "orders format", "line 5, column 38", S, {}),
    "a brace too few": ("true}}", "true}", "line 6, column 5", S, {"reason": containing("{ of line 5")}),
    "a brace too many": ("true}}", "true}}}", "line 5, column 70", S, {"reason": containing("a } that")}),
    "an open quote": ("key: customer", 'key: "customer', "line 6, column 10", S, {"reason": containing("the quote")}),
    "typographic quotes": (
        "customer",
        "\u201ccustomer\u201d",
        "line 6",
        "config-quote-typographic",
        {"quote": "\u201c"},
    ),
    "a space that is none": (
        "partitions: 4",
        "partitions:\u00a04",
        "line 2, column 12",
        S,
        {"reason": containing("U+00A0")},
    ),
    "an alias": ("key: customer", "key: *k", "line 6, column 10", S, {"reason": containing("aliases")}),
    "a merge key": (
        "  every:",
        "  <<: {watermark: x}\n  every:",
        "line 10, column 3",
        S,
        {"reason": containing("merge")},
    ),
    "two documents": ("partitions: 4", "---\npartitions: 4", "line 2", S, {"reason": containing("a second document")}),
    "a percent sign": ("key: customer", "key: %customer", "line 6, column 10", S, {"reason": containing("%")}),
    "an at sign": ("key: customer", "key: @customer", "line 6, column 10", S, {"reason": containing("@")}),
    "a star": ("key: customer", "key: * *", "line 6, column 10", S, {"reason": containing("*")}),
    "a backslash": ("path: data/orders", 'path: "data\\orders"', "line 5, column 26", S, {"reason": containing("\\o")}),
    "two colons": ("key: customer", "key: a: b", "line 6, column 11", S, {"reason": containing("in quotes")}),
}


@pytest.mark.parametrize(
    ("old", "new", "position", "code", "facts"),
    [*KEYS.values(), *VALUES.values(), *SYNTAX.values()],
    ids=[*KEYS, *VALUES, *(f"{name} (syntax)" for name in SYNTAX)],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, position: str, code: str, facts: dict[str, object]
) -> None:
    assert FEED.count(old) == 1
    error = error_of(tmp_path, FEED.replace(old, new))
    refused(code, **facts).check(error)
    assert str(error).startswith(f"conf/feeds/orders.yaml, {position}: ")


@pytest.mark.parametrize(
    ("old", "new", "position", "code"),
    [
        ("stream_time: max", "stream_time: mx", "line 7", "config-value-not-allowed"),
        ("slip: fail", "slip: quarantin", "line 9", "config-value-invalid"),
        (
            "shop.totals}",
            "shop.totals}\n  others: {table: shop.totals}",
            "line 6, column 19",
            "config-values-conflict",
        ),
        ("job: totals", "job: sums", "line 1", "config-name-differs"),
    ],
)
def test_a_mistake_in_a_job_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, position: str, code: str
) -> None:
    error = error_of(tmp_path, JOB.replace(old, new))
    refused(code).check(error)
    assert str(error).startswith(f"conf/jobs/totals.yaml, {position}: ")


@pytest.mark.parametrize(
    ("line", "position", "code"),
    [
        ("execution: vectorised", "line 3", "config-value-not-allowed"),
        ("staging: rows", "line 3", "config-values-conflict"),
        ("cores: 2\nmaster: yarn\nconnect: sc://h", "line 5", "config-values-conflict"),
        ("cores: 0", "line 3", "config-number-out-of-range"),
        ("ships: dist/*.whl", "line 3", TYPE),
        ("wharehouse: x", "line 3", UNKNOWN),
    ],
)
def test_a_mistake_in_a_target_is_named_with_its_line(tmp_path: Path, line: str, position: str, code: str) -> None:
    error = error_of(tmp_path, f"{TARGET}{line}\n")
    refused(code).check(error)
    assert str(error).startswith(f"conf/targets/local.yaml, {position}: ")


def test_all_mistakes_of_a_file_are_named_from_top_to_bottom(tmp_path: Path) -> None:
    text = FEED.replace("partitions: 4", "partition: 4").replace("csv", "cvs").replace("1h", "'{{ x }}'")
    lines = str(error_of(tmp_path, f"{text}zone: Mars\nzone: UTC\n")).splitlines()
    assert [line.partition(": ")[0].rpartition("line ")[2] for line in lines] == ["2", "5, column 41", "10", "12"]


def test_text_that_yaml_would_read_as_a_number_or_a_date_stays_as_it_is_written(tmp_path: Path) -> None:
    options = "{a: 3.10, b: 1:30, c: 2026-01-01, d: 010, e: 1_000, f: yes, on: 1e3}"
    write(tmp_path, "feeds/orders.yaml", FEED.replace("{header: true}", options).replace("csv", "parquet"))
    log = load_feed(tmp_path, "orders").logs["orders"]
    texts = {"a": "3.10", "b": "1:30", "c": "2026-01-01", "d": "010", "e": "1000", "f": "true", "on": "1e3"}
    assert log.source.options == texts
