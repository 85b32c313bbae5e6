"""Benchmarks: commands, not tests. Run `python -m tests.bench NAME`."""
