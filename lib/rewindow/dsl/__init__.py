"""The fluent API: builds a `Topology` and runs nothing."""
