"""Take the screenshots in `docs/deployment/airflow.md`: `python -m tests.airflow.screenshots` (needs Chromium).

It starts Airflow on loopback with the small shop, backfills its four days, fixes the job and recomputes its past. It then
captures the grid, the request for approval before publishing, and the asset with the content of its event.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from tests.airflow.browser import Browser
from tests.airflow.home import AIRFLOW, ROOT, environment, migrate, patiently
from tests.airflow.live import Live
from tests.airflow.shop import DAGS, make_shop

JOB = "daily_orders"
WAIT_SECONDS = 1500
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The schedule has ended, so only the backfill runs.
ENDED = DAGS.replace("parent.parent", "parent.parent, end_date=datetime(2026, 1, 31, tzinfo=UTC)").replace(
    "from pathlib", "from datetime import UTC, datetime\nfrom pathlib"
)
PICTURES = ROOT / "docs/images"
GRID_PANEL = {"details-panel,main-panel": {"expandToSizes": {}, "layout": [30, 70]}}


def main() -> int:
    """Take the screenshots. Return 78 if there is no browser."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        sys.stderr.write("there is no Chromium: apt-get install chromium\n")
        return 78
    with tempfile.TemporaryDirectory() as folder:
        root = make_shop(Path(folder))
        (root / "dags/shop.py").write_text(ENDED)
        env = environment(root / "airflow", root / "dags")
        migrate(env)
        with Live(env) as live:
            live.until(lambda: len(live.get("/dags")["dags"]) == 4, WAIT_SECONDS, "the DAGs")
            for dag in (JOB, f"{JOB}__backfill"):
                live.patch(f"/dags/{dag}", {"is_paused": False})
            dates = ["--from-date", "2026-01-01", "--to-date", "2026-01-04"]
            patiently(live.env, [AIRFLOW, "backfill", "create", "--dag-id", JOB, *dates])
            live.until(lambda: all_done(live), WAIT_SECONDS, "the backfill")
            question = ask(live, root)
            with Browser(program, width=1400, height=760) as page:
                take(page, live, question)
    return 0


def all_done(live: Live) -> bool:
    """Return whether the four runs of the backfill have ended."""
    runs = live.get(f"/dags/{JOB}/dagRuns")["dag_runs"]
    return len(runs) == 4 and all(run["state"] in ("success", "failed") for run in runs)


def ask(live: Live, root: Path) -> str:
    """Fix the job and recompute its past. Return the URL at which Airflow asks for approval."""
    code = root / "jobs/daily_orders.py"
    code.write_text(
        code.read_text().replace('stream("orders")', 'stream("orders").filter(lambda key, value: key != "c")')
    )
    dag = f"{JOB}__backfill"
    body = {"logical_date": None, "conf": {"from": "2026-01-01", "branch": "without_c"}}
    run = live.post(f"/dags/{dag}/dagRuns", body)["dag_run_id"]
    live.until(
        lambda: live.tasks(dag, run).get("promote", {})["state"] == "awaiting_input", WAIT_SECONDS, "the question"
    )
    return f"/dags/{dag}/runs/{quote(run)}/tasks/promote/required_actions"


def take(page: Browser, live: Live, question: str) -> None:
    """Open each page, wait for its content, and take a screenshot."""
    page.goto(f"{live.url}/auth/token/login?next={quote(f'{live.url}/dags/{JOB}')}")
    page.until(_shows("Asset Events"))
    page.value(f"localStorage.setItem('react-resizable-panels:grid-ltr', {json.dumps(json.dumps(GRID_PANEL))})")
    page.goto(f"{live.url}/dags/{JOB}/runs")
    page.until(_shows("backfill__2026-01-05"))
    page.rest()
    page.shoot(PICTURES / "airflow-grid.png")
    page.goto(live.url + question)
    page.until(_shows("Approve"))
    page.rest()
    page.shoot(PICTURES / "airflow-approval.png")
    asset = next(one["id"] for one in live.get("/assets")["assets"] if one["name"].startswith(f"shop.{JOB} in "))
    page.goto(f"{live.url}/assets/{asset}")
    page.until("document.querySelector('.codicon-folding-collapsed')")
    page.rest()
    page.click(".codicon-folding-collapsed")
    page.until(_shows("digest"))
    page.rest()
    page.shoot(PICTURES / "airflow-asset.png")


def _shows(words: str) -> str:
    return f"document.body && document.body.innerText.replaceAll('\\u00a0', ' ').includes({json.dumps(words)})"


if __name__ == "__main__":
    sys.exit(main())
