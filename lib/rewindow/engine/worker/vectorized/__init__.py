"""Vectorized execution: runs declarative sub-topologies on whole Arrow batches, with the results of record execution (L4).

Read `planner` (which sub-topologies it can run), `execution` (from files to files), `final_results` (why it is exact) and
`folds`. `joins` has joins of streams and tables.
"""
