"""Write the generated pages of the site: ``python -m tests.docs``."""

from __future__ import annotations

import sys

from tests.docs.generated import DOCS, PAGES, table_errors

if __name__ == "__main__":
    for name, text in PAGES.items():
        written = text()
        if problems := table_errors(written):
            sys.exit(f"{name}: {problems[0]}")
        (DOCS / name).write_text(written, encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
