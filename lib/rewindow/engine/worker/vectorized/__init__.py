"""Vectorized execution: runs declarative sub-topologies on whole Arrow batches, with record execution's results (L4).

Read `planner` (what it can run), `execution` (files to files), `final_results` (why it is exact), `groups`, `folds`. `joins` has
joins of streams and tables.
"""
