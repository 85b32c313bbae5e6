"""The semantics: records, time, order, state, topology and the task. Uses only the standard library, no real clock, no I/O."""
