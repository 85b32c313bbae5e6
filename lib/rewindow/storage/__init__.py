"""Where bytes lie: a folder of this machine or a bucket; what Spark's workers and the tables share."""
