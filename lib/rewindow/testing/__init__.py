"""Test topologies in milliseconds and without Spark. Tests feed records to the real tasks. For users' own tests."""

from rewindow.streams.settings import Limits, Semantics, Settings
from rewindow.testing.driver import TopologyTestDriver
from rewindow.testing.partition_group import InvalidTimestamp
from rewindow.testing.replay import Epoch, LocalReplay, Sent
from rewindow.testing.transcript import Transcript, TranscriptError, check, load, play

__all__ = [
    "Epoch",
    "InvalidTimestamp",
    "Limits",
    "LocalReplay",
    "Semantics",
    "Sent",
    "Settings",
    "TopologyTestDriver",
    "Transcript",
    "TranscriptError",
    "check",
    "load",
    "play",
]
