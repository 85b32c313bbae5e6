"""The semantics: records, time, order, state, topology, task. Uses only the standard library, no real clock and no I/O."""
