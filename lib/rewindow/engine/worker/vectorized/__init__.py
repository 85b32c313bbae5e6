"""Vectorized execution: runs declarative sub-topologies on whole Arrow batches, with the results of record execution (L4).

`planner` decides which sub-topologies it can run. `execution` runs a task, from its input files to its staged files.
`final_results` explains why the results are exact. `folds` has the aggregates, `joins` the joins of streams and tables.
"""
