"""What a user reads about a mistake in a YAML file: file and line, what is wrong, and the word that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindow.config.load import load_feed, load_job, load_target
from rewindow.errors import ConfigError
from tests.config.written import write

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


def said(tmp_path: Path, text: str) -> str:
    kind, load = {
        "feed": ("feeds/orders", load_feed),
        "job:": ("jobs/totals", load_job),
        "targ": ("targets/local", load_target),
    }[text[:4]]
    write(tmp_path, f"{kind}.yaml", text)
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, kind.partition("/")[2])
    return str(refused.value)


KEYS = {
    "a key of a log": (
        "    arrived_at:",
        "    arived_at:",
        "line 8: logs.orders.arived_at",
        "did you mean `arrived_at`?",
    ),
    "a hyphen": ("    arrived_at:", "    arrived-at:", "line 8: ", "did you mean `arrived_at`?"),
    "capitals": ("partitions:", "Partitions:", "line 2: Partitions is", "did you mean `partitions`?"),
    "camel case": ("    arrived_at:", "    arrivedAt:", "line 8: ", "did you mean `arrived_at`?"),
    "a key in braces": ("format: csv", "fromat: csv", "line 5, column 33: ", "did you mean `format`?"),
    "a key of another block": (
        "landing:\n  every: 1h",
        "every: 1h",
        "line 9: every is not a known key here: it belongs to",
    ),
    "a key without its block": (
        "feed: orders",
        "feed: orders\ntimestamp: t",
        "line 2: ",
        "as logs.NAME.timestamp. Known",
    ),
    "no space after the colon": ("{header: true}", "{header: true}, copies:land", "write a space after the colon"),
    "a missing key": ("    key: customer\n", "", "line 4: logs.orders.key is missing: add it"),
    "a duplicate key": ("landing:", "partitions: 8\nlanding:", "line 9: duplicate key 'partitions', which line 2 has"),
    "a topic": ("  orders:\n", "  or/ders:\n", "line 4: logs.or/ders: 'or/ders' is not a valid name"),
}
VALUES = {
    "a format": ("format: csv", "format: cvs", "line 5, column 41: ", "did you mean `csv`?"),
    "a number": ("partitions: 4", "partitions: four", "line 2: partitions must be a whole number"),
    "a number in quotes": ("partitions: 4", 'partitions: "4"', "line 2: partitions must be a whole number"),
    "an octal number": ("partitions: 4", "partitions: 010", "line 2: partitions must be a whole number"),
    "a word for true": ("key: customer", "key: yes", "line 6: ", "YAML reads yes, no, on and off as true and false"),
    "an empty value": ("partitions: 4", "partitions:", "line 2: partitions is empty"),
    "an empty text": ("timestamp: ordered_at", "timestamp:", "line 7: logs.orders.timestamp: is empty"),
    "an empty block": ("  every: 1h\n", "", "line 9: landing is empty"),
    "a list for a block": ("  every: 1h", "  - every: 1h", "line 9: landing must be a block of keys"),
    "a text for a block": ("landing:\n  every: 1h", "landing: hourly", "line 9: landing must be a block of keys"),
    "no unit": ("  every: 1h", "  every: 60", "line 10: landing.every: 60 has no unit: write it like 1h"),
    "minutes and seconds": ("landing:", "lag: 1:30\nlanding:", "line 9: lag: '1:30' is not a duration"),
    "a time zone": ("landing:", "zone: Europe/Berln\nlanding:", "line 9: ", "did you mean `Europe/Berlin`?"),
    "what does not fit together": (
        *("    arrived_at: received_at\n", ""),
        *("line 9: `every: 1h` needs each row's arrival time", "`arrived_at: COLUMN`"),
    ),
}


@pytest.mark.parametrize(("old", "new", "says"), [(o, n, s) for o, n, *s in KEYS.values()], ids=KEYS)
def test_a_wrong_key_is_named_with_its_line_and_the_nearest_word(
    tmp_path: Path, old: str, new: str, says: list[str]
) -> None:
    assert FEED.count(old) == 1
    message = said(tmp_path, FEED.replace(old, new))
    assert message.startswith("conf/feeds/orders.yaml, line ")
    for words in says:
        assert words in message


@pytest.mark.parametrize(("old", "new", "says"), [(o, n, s) for o, n, *s in VALUES.values()], ids=VALUES)
def test_a_wrong_value_is_named_with_its_line_and_the_nearest_word(
    tmp_path: Path, old: str, new: str, says: list[str]
) -> None:
    assert FEED.count(old) == 1
    message = said(tmp_path, FEED.replace(old, new))
    assert len(message.splitlines()) == 1
    for words in says:
        assert words in message


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "stream_time: max",
            "stream_time: mx",
            "line 7: semantics.stream_time must be 'max' or 'min': did you mean `max`?",
        ),
        ("slip: fail", "slip: quarantin", "line 9: on_error.slip: "),
        ("slip: fail", "slip: quarantin", "Did you mean `quarantine`?"),
        (
            "shop.totals}",
            "shop.totals}\n  others: {table: shop.totals}",
            "line 6, column 19: outputs: table shop.totals is",
        ),
        ("job: totals", "job: sums", "line 1: job is 'sums', but must equal the file's name"),
    ],
)
def test_a_mistake_in_a_job_is_named_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    message = said(tmp_path, JOB.replace(old, new))
    assert message.startswith("conf/jobs/totals.yaml, line ")
    assert says in message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "execution: vectorised",
            "line 3: execution must be 'auto', 'record' or 'vectorized': did you mean `vectorized`?",
        ),
        ("staging: rows", "line 3: commit: spark, staging: rows and catalog: CATALOG.SCHEMA go together"),
        ("cores: 2\nmaster: yarn\nconnect: sc://h", "line 5: master and connect exclude each other"),
        ("ships: dist/*.whl", "line 3: ships must be a list"),
    ],
)
def test_a_mistake_in_a_target_is_named_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    assert said(tmp_path, f"{TARGET}{line}\n").startswith(f"conf/targets/local.yaml, {says}")


def test_all_mistakes_of_a_file_are_named_from_top_to_bottom(tmp_path: Path) -> None:
    text = FEED.replace("partitions: 4", "partition: 4").replace("csv", "cvs").replace("1h", "'{{ x }}'")
    lines = said(tmp_path, f"{text}zone: Mars\nzone: UTC\n").splitlines()
    assert [line.partition(": ")[0].rpartition("line ")[2] for line in lines] == ["2", "5, column 41", "10", "12"]


def test_text_that_yaml_would_read_as_a_number_or_a_date_stays_as_it_is_written(tmp_path: Path) -> None:
    options = "{a: 3.10, b: 1:30, c: 2026-01-01, d: 010, e: 1_000, f: yes, on: 1e3}"
    write(tmp_path, "feeds/orders.yaml", FEED.replace("{header: true}", options).replace("csv", "parquet"))
    log = load_feed(tmp_path, "orders").logs["orders"]
    texts = {"a": "3.10", "b": "1:30", "c": "2026-01-01", "d": "010", "e": "1000", "f": "true", "on": "1e3"}
    assert log.source.options == texts
