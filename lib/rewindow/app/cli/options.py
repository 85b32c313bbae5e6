"""The options that many commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Target = Annotated[str, typer.Option(help="Where things are: conf/targets/NAME.yaml.")]
Folder = Annotated[str, typer.Option("--project", help="The project's folder (default: where conf/ is found).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Branch = Annotated[str, typer.Option(help="The branch; `main` has the published tables.")]
Debug = Annotated[bool, typer.Option(help="Show stack traces and Java's log.")]
