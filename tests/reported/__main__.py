"""Write README.md: ``python -m tests.reported``."""

from tests.reported.list_of_reports import PAGE, page

PAGE.write_text(page(), encoding="utf-8")
