"""The semantics: records, time, order, state, topology and the task. Standard library only; no clock, no I/O."""
