"""A fluent way to write a `Topology`. Nothing here runs anything."""
