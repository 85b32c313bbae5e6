"""Events of commands for OpenLineage and OpenTelemetry. Off, and nothing is imported, unless the environment configures them."""
