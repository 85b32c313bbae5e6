"""Nothing lost, nothing doubled: the fault matrix, and the proof that its tests would notice (`python -m tests.crash`)."""
