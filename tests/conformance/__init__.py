"""The player: it plays scenarios recorded from Kafka Streams 4.4.0 through the public API, and compares the results.

    python -m tests.conformance FILE... [--mode whole|cut] [--json]

`vectors/FORMAT.md` describes the format. A scenario passes, deviates by a decision (D-number) with a proof, is not played
because an operator is missing, or fails.
"""
