"""The tests that do not pass with the compiled core."""

EXCEPTIONS = {
    "tests/docs/test_generated.py::test_a_generated_page_is_that_of_the_code[reference/api.md]": (
        "the page shows signatures as Python has them, and compiled functions have no annotations"
    ),
    "tests/streams/test_error_policy.py::test_after_the_last_attempt_the_run_fails_or_the_record_is_quarantined": (
        "a compiled loop has no variables, so errors name the record's offset and do not show the record"
    ),
    "tests/streams/test_context.py::test_a_value_that_a_store_rejects_names_node_and_record": (
        "the same: the error names the node, and the record by its offset"
    ),
}
"""A test's id, or the beginning of several, and why it cannot pass."""
