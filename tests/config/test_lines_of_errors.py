"""An error carries the line of the user's code as a value; as text, it follows the message."""

from __future__ import annotations

import pickle

import pytest

from rewindow.errors import ConfigError, naming


def test_the_line_follows_the_message_and_is_named_once():
    error = ConfigError("of-a-test", "the topology reads 'x'").at_line("jobs/a.py:7").at_line("jobs/b.py:1")
    assert (error.message, error.line) == ("the topology reads 'x'", "jobs/a.py:7")
    assert str(error) == "the topology reads 'x' (jobs/a.py:7)"
    assert str(ConfigError("of-a-test", "no line").at_line(None)) == "no line"


def test_the_line_survives_a_worker_and_the_names_of_commands():
    error = ConfigError("of-a-test", "land it: `rewindow land FEED`").at_line("jobs/a.py:7")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - as between processes
    with pytest.raises(ConfigError) as named, naming(FEED="orders"):
        raise error
    assert str(named.value) == "land it: `rewindow land orders` (jobs/a.py:7)"
