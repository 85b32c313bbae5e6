"""A hook of MkDocs, named in `mkdocs.yml`: the page of the API is made while the site is built, so it is never out of date."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tests.docs import api


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to those of `docs/`."""
    files.append(File.generated(config, "reference/api.md", content=api.page()))
    return files
