"""Execution: the code that runs next to the data (`worker`), and the code that schedules it on Spark (`spark`)."""
