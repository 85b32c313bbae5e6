"""The README's examples are executed: its job in an empty project, through the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewindow.testing import TopologyTestDriver

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create the README's project from its code blocks."""
    feed, job = blocks("yaml")[:2]
    for name, text in (
        ("conf/feeds/orders.yaml", feed),
        ("conf/jobs/daily_orders.yaml", job),
        ("jobs/daily_orders.py", blocks("python")[0]),
        ("data/orders.csv", orders()),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "conf" / "targets").mkdir()
    shutil.copy(ROOT / "conf/targets/local.yaml", tmp_path / "conf/targets/local.yaml")
    return tmp_path


def orders() -> str:
    lines = ["order_id,customer,amount,ordered_at,received_at"]
    for number in range(60):
        day, hour = 1 + number // 20, number % 20
        ordered, received = f"2026-11-{day:02}T{hour:02}:10:00", f"2026-11-{day:02}T{hour:02}:40:00"
        lines.append(f"{number},{'abc'[number % 3]},{number}.5,{ordered},{received}")
    return "\n".join(lines) + "\n"


def said(shop: Path, *arguments: str) -> Any:
    command = Path(sys.executable).parent / "rewindow"
    done = subprocess.run([command, *arguments, "--json"], cwd=shop, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.spark
def test_a_job_of_ones_own(shop: Path) -> None:
    landed = said(shop, "land", "orders")
    assert (landed["landings"], landed["rows"]) == ([1, 2, 3], 60)
    assert said(shop, "plan", "daily_orders")["run"]["name"] == "main/1"
    ran = said(shop, "run", "daily_orders")
    assert ran["consumed"] == {"orders": 60}
    assert ran["targets"]["output/daily-orders"] == 6, "two of the three days have ended, for three customers each"
    assert (shop / "warehouse/shop/daily_orders/_delta_log").is_dir()
    assert said(shop, "run", "daily_orders")["run"] is None
    shown = said(shop, "show", "daily_orders")
    assert [run["run"] for run in shown["runs"]] == ["main/1"]
    assert said(shop, "explain", "daily_orders")["outputs"][0]["table"] == "shop/daily_orders"


def test_the_test_that_it_shows(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(shop))
    monkeypatch.setattr("jobs.__path__", [str(shop / "jobs")], raising=False)
    shown = blocks("python")[1]
    order = "from typing import NamedTuple\nclass Order(NamedTuple):\n    order_id: int\n    amount: float\n"
    namespace: dict[str, Any] = {}
    exec(order + shown, namespace)  # noqa: S102 - the README's own code
    namespace["test_a_day_is_closed_six_hours_after_its_end"]()
    assert TopologyTestDriver is namespace["TopologyTestDriver"]


def test_the_sessions_joins_and_schedules_that_it_shows() -> None:
    namespace: dict[str, Any] = {"__name__": "readme"}
    exec(next(block for block in blocks("python") if "SessionWindows" in block), namespace)  # noqa: S102 - the README's own code
    tests = [function for name, function in namespace.items() if name.startswith("test_")]
    for test in tests:
        test()
    assert len(tests) == 3


@pytest.mark.parametrize("mode", ["whole", "cut"])
def test_the_transcript_that_it_shows(shop: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    story = next(block for block in blocks("yaml") if "transcript:" in block)
    (shop / "tests").mkdir()
    (shop / "tests/daily_orders.yaml").write_text(story)
    monkeypatch.chdir(shop)
    monkeypatch.syspath_prepend(str(shop))
    monkeypatch.setattr("jobs.__path__", [str(shop / "jobs")], raising=False)
    namespace: dict[str, Any] = {}
    exec(next(block for block in blocks("python") if "Transcript" in block), namespace)  # noqa: S102 - the README's own code
    (case,) = namespace["load"]("tests/daily_orders.yaml")
    namespace["test_daily_orders"](case, mode == "cut")
    wrong = story.replace("{orders: 2, amount: 4.0}, 23h]]", "{orders: 2, amount: 4.0}, 22h]]")
    assert wrong != story
    (shop / "tests/daily_orders.yaml").write_text(wrong)
    (case,) = namespace["load"]("tests/daily_orders.yaml")
    with pytest.raises(namespace["check"].__globals__["TranscriptError"], match="different timestamp"):
        namespace["test_daily_orders"](case, mode == "cut")


def test_every_command_is_in_the_readme() -> None:
    from rewindow.app.cli.app import app

    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert f"`rewindow {name}" in README


def test_every_public_name_is_in_the_readme() -> None:
    import rewindow

    table = README[README.index("## What to import") : README.index("## Writing a processor")]
    assert [name for name in rewindow.__all__ if f"`{name}" not in table] == [], "name it in the README's table"
