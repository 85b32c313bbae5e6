"""The player: scenarios that the real Kafka Streams 4.3.1 was given, played through the public API, and compared.

    python -m tests.conformance FILE... [--mode whole|cut] [--json]

The format is that of `vectors/FORMAT.md`. A scenario passes, deviates by a D-number of the design with a proof, is not
played for want of an operator, or fails.
"""
