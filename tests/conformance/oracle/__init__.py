"""Play new scenarios on the real Kafka Streams 4.3.1 and on rewindow, and compare the results.

    python -m tests.conformance.oracle [--seed N] [--count N] [--like TEXT] [--keep FILE]

Needs a JDK and Maven, which fetches the jars once. New scenarios are recorded ones with random windows, bounds and inputs.
As for the recorded ones, every difference from Kafka must be proven to follow from a decision (D-number). The same seed gives
the same scenarios.
"""
