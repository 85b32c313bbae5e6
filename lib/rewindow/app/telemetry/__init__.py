"""Events of commands for OpenLineage and OpenTelemetry. Unless the environment configures them, nothing is imported or sent."""
