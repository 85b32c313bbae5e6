"""Windows: which ones a record belongs to, and when each is closed."""
