"""The naive twin: a slow, obvious implementation of the scenarios, with a switch for each decision that differs from Kafka.

It shares only the vocabulary of a scenario (`tests.oracle.vocabulary`) with the engine. A deviation is proven if the twin
gives Kafka's results with Kafka's rule, and the engine's results with ours.
"""

from tests.oracle.graph import NotCoveredError
from tests.oracle.groups import play_group
from tests.oracle.rules import SWITCHES, Rules
from tests.oracle.twin import play

__all__ = ["SWITCHES", "NotCoveredError", "Rules", "play", "play_group"]
