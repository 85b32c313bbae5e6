"""Test a topology without Spark, in milliseconds: the real tasks, fed by hand. Shipped for users' own tests."""

from rewindow.testing.driver import TopologyTestDriver
from rewindow.testing.replay import Epoch, LocalReplay, Sent
from rewindow.testing.transcript import Transcript, TranscriptError, check, load, play

__all__ = [
    "Epoch",
    "LocalReplay",
    "Sent",
    "TopologyTestDriver",
    "Transcript",
    "TranscriptError",
    "check",
    "load",
    "play",
]
