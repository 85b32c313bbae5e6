"""Landing with Arrow: read a source's files, split their rows by partition, sort them, and write the log. Uses no JVM."""
