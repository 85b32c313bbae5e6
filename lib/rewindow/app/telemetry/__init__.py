"""What commands tell OpenLineage and OpenTelemetry. Off, and nothing imported, unless the environment configures them."""
