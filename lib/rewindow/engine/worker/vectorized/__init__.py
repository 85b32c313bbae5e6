"""Vectorized execution: declarative sub-topologies on whole Arrow batches, with record execution's results (L4).

Read `plan` (what it can run), `execution` (files to files), `finals` (why it is exact), then `groups` and `folds`.
"""
