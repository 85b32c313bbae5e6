"""Check all feeds and jobs for alerting."""
