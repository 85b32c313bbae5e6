"""Benchmarks: commands, not tests. `python -m tests.bench.record_execution`."""
