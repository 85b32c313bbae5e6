"""Windows: to which windows a record belongs, and when each window closes."""
