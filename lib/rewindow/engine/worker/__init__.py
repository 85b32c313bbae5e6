"""Code that runs next to the data: readers, record and vectorized execution, writers. Never imports pyspark."""
