"""The columnar lane: declarative sub-topologies on whole Arrow batches, with the record lane's results (law 4).

Read `plan` (what it can run), `lane` (files to files), `finals` (why it is exact), then `groups` and `folds`.
"""
