"""The report of a job: what its ledgers, task reports and stores say, as data and as one HTML page."""
