"""Storage that workers and tables share: local folders and buckets."""
