"""Vectorized execution: runs declarative sub-topologies on whole Arrow batches, with the results of record execution (L4).

`choose_execution` decides which sub-topologies it can run. `task_execution` runs a task, from its input files to its staged
files. `window_results` explains why the results are exact. `folds` has the aggregates, `joins` the joins of streams and
tables.
"""
