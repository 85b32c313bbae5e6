"""The report on a job: what its ledgers, task reports and stores contain, as data and as one HTML page."""
