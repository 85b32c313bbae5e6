"""Takes the pictures of `lib/rewindow/airflow/AIRFLOW.md`: `python -m tests.airflow.screenshots` (needs Chromium).

It starts an Airflow on loopback over the small shop, makes a backfill of its four days, and looks at what came of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from tests.airflow.home import AIRFLOW, ROOT, environment, migrate, said
from tests.airflow.live import Live
from tests.airflow.shop import DAGS, make_shop

JOB = "daily_orders"
WAIT_SECONDS = 900
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The schedule is over, so that only the backfill runs.
ENDED = DAGS.replace("parent.parent", "parent.parent, end_date=datetime(2026, 1, 31, tzinfo=UTC)").replace(
    "from pathlib", "from datetime import UTC, datetime\nfrom pathlib"
)


def main() -> int:
    """Take the pictures; 78 if there is no browser."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.stderr.write("there is no Chromium: apt-get install chromium\n")
        return 78
    pictures = ROOT / "lib/rewindow/airflow"
    with tempfile.TemporaryDirectory() as folder:
        root = make_shop(Path(folder))
        (root / "dags/shop.py").write_text(ENDED)
        env = environment(root / "airflow", root / "dags")
        migrate(env)
        with Live(env) as live:
            live.until(lambda: len(live.get("/dags")["dags"]) == 4, WAIT_SECONDS, "the DAGs")
            live.patch(f"/dags/{JOB}", {"is_paused": False})
            dates = ["--from-date", "2026-01-01", "--to-date", "2026-01-04"]
            said(live.env, AIRFLOW, "backfill", "create", "--dag-id", JOB, *dates)
            live.until(lambda: all_done(live), WAIT_SECONDS, "the backfill")
            asset = next(one["id"] for one in live.get("/assets")["assets"] if one["name"] == f"shop.{JOB}")
            shoot(browser, live, f"/dags/{JOB}", pictures / "grid.png")
            shoot(browser, live, f"/assets/{asset}", pictures / "asset.png")
    return 0


def all_done(live: Live) -> bool:
    """Whether the four runs of the backfill have ended."""
    runs = live.get(f"/dags/{JOB}/dagRuns")["dag_runs"]
    return len(runs) == 4 and all(run["state"] in ("success", "failed") for run in runs)


def shoot(browser: str, live: Live, path: str, picture: Path) -> None:
    """Look at a page, logged in, until it has had time to load."""
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en"]
        page = f"{live.url}/auth/token/login?next={quote(live.url + path)}"
        subprocess.run(
            [browser, *options, f"--user-data-dir={profile}", "--window-size=1700,800", "--virtual-time-budget=20000",
             f"--screenshot={picture}", page],
            check=True, timeout=180, capture_output=True,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
