"""Random histories of commands with faults, each compared with a naive count of the same decisions after every command.

Signals end commands, source files are late, broken or altered, and files of tables are deleted, cut short or replaced by an
older copy. A refused command must name a way out. It is followed literally, and then the command is called again.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pendulum

from rewindow.contracts.exit_codes import CODES, ON_HOLD
from rewindow.tables.delta.table_rows import read_rows
from tests.bad_input.scene import TARGET, USERS, Bench, topology, without_spark
from tests.crash.commands import call, noisy, quiet, warm_up
from tests.crash.forks import answer, fork
from tests.crash.matrix import Outcome, folder, outcomes
from tests.crash.naive_project import HOLD_ABOVE, HOUR, MAIN, MAX_AHEAD, PARTITIONS, NaiveProject, Row, Total
from tests.crash.random_kills import command
from tests.crash.results import Results
from tests.crash.settings import Figures, Settings
from tests.ingest.local_engine import T0
from tests.refusals import fixes

HISTORIES, QUICK_HISTORIES = 60, 2
STEPS = (15, 30)
FEED = f"""\
feed: activity
partitions: {PARTITIONS}
%slogs:
  events:
    source: {{format: csv, path: data, schema: "user STRING, t BIGINT, got BIGINT, x BIGINT", options: {{header: "true"}}}}
    key: user
    timestamp: t
    arrived_at: got
    units: {{t: ms, got: ms}}
"""
JOB = f"""\
job: counts
topology: bench_job:build_topology
feed: activity
outputs:
  totals:
    table: alerts.totals
    expect:
      - range: {{column: total, max: {HOLD_ABOVE}}}
        on_fail: hold
"""
TOPOLOGY = """
sums = builder.stream("events").select("x * %d AS x").group_by_key().windowed_by(TimeWindows.of("30m", grace="5m"))
totals = sums.aggregate({"total": Sum("x")}, store="sums")
totals.suppress(until_window_closes(), name="closed").to_stream().to("totals")
"""
LOOKS = ("show counts", "status", "plan counts", "head counts", "ls", "why alerts.totals ann", "branch list counts")
SHOWS = {*(line.split()[0] for line in LOOKS), "explain", "report", "gc"} - {"branch"}
"""Commands of an advice that are no way out by themselves."""
FINDS = {"status", "why", "diff"}
"""Commands whose answer may be 1."""
DEPTH = 5
"""So many refusals may follow from the first one."""


class WrongError(Exception):
    """The history showed a fault."""


class History:
    """A project, what it must look like, and what is broken at the moment."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = random.Random(f"history {seed}")
        self.bench, self.temporary = Bench(root / "project"), root / "temporary"
        self.known = NaiveProject(is_hourly=seed % 2 == 1)
        self.hour, self.branch, self.is_altered = 0, 0, False
        self.repairs: list[Callable[[], None]] = []
        self.older = root / "older"
        self.seconds: dict[str, float] = {}
        self.counted: Counter[str] = Counter()
        self.log: list[str] = []
        self.bench.write("conf/feeds/activity.yaml", FEED % ("landing: {every: 1h}\n" if self.known.is_hourly else ""))
        self.bench.write("conf/jobs/counts.yaml", JOB)
        self.bench.write("conf/targets/local.yaml", TARGET)
        self._code(1)

    def play(self) -> None:
        """Play the whole history. Raises `WrongError`."""
        self.new_file()
        for _ in range(self.rng.randint(*STEPS)):
            self.rng.choices(*zip(*EVENTS, strict=True))[0](self)
        self.repaired()
        begun = len(self.log)
        for words in (self.land_words(), "run counts", "republish counts", "verify counts"):
            self.perform(words)
        takes_back = any("follows ['rewind" in line for line in self.log[begun:])  # a run that is on hold
        runs = self.known.branches[MAIN]
        if runs and self.known.generation == runs[-1].generation and not takes_back:
            self.check(self.known.taken(MAIN) == self.known.landings, "the last run left landings")

    def check(self, fact: object, what: object) -> None:
        if not fact:
            raise WrongError(f"{what}\n  " + "\n  ".join(self.log[-12:]))

    # --- commands -------------------------------------------------------------------------------------------------------

    def land_words(self) -> str:
        return f"land activity --until {_iso(self.hour)}" if self.known.is_hourly else "land activity"

    def perform(self, line: str, *, depth: int = 0, is_killed: bool = False) -> bool:
        """Call a command until it succeeds, following an advice of each refusal. Return whether it succeeded."""
        words = line.split()
        if is_killed:
            self._kill(words)
        done = self._call(words)
        if done["code"] not in _good(words):
            if done["name"] == "promoted-run-on-hold":
                self.known.caught_up(words[2])
                self.compare(line)
            return self._refused(line, done, depth)
        self.known.applied(words, self._until(words))
        self.compare(line)
        if done["code"] == ON_HOLD:
            if self.rng.random() < 0.7:
                self._refused(line, done, depth)
        elif depth == 0 and self.rng.random() < 0.3:
            done = self._call(words)
            self.check(done["code"] in _good(words), f"the same command again: {done}")
            self.compare(f"{line} again")
        return True

    def _until(self, words: Sequence[str]) -> int | None:
        if not self.known.is_hourly:
            return None
        return T0 + self.hour * HOUR if "--until" in words else int(time.time() * 1000)

    def _call(self, words: list[str]) -> dict[str, Any]:
        begun = time.monotonic()
        done: dict[str, Any] = answer(partial(called, str(self.bench.root), words))
        self.seconds[words[0]] = time.monotonic() - begun
        self.counted["commands"] += 1
        self.log.append(f"{' '.join(words)}: {done['code']} {done['message']} ({self.seconds[words[0]]:.1f} s)")
        self.check(done["code"] in CODES and done["code"] != 70, f"undocumented or 70: {done}")
        self.check(not noisy(done["said"]), f"noise: {done}")
        return done

    def _kill(self, words: list[str]) -> None:
        number = self.rng.choice([signal.SIGKILL, signal.SIGTERM])
        self.temporary.mkdir(exist_ok=True)
        child = fork(partial(command, self.bench.root, tuple(words), self.temporary))
        time.sleep(self.rng.random() * self.seconds.get(words[0], 0.3) * 1.2)
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)
        begun = time.monotonic()
        code = child.finish()
        is_killed = code in {-number, 128 + number}
        self.counted["kills"] += is_killed
        self.log.append(f"{' '.join(words)}: {number.name} after {code} ({time.monotonic() - begun:.1f} s)")
        self.check(is_killed or code in CODES, f"{words} ended with {code} by {number}")

    def _refused(self, line: str, done: dict[str, Any], depth: int) -> bool:
        """Follow one way out of a refusal, then call the command again."""
        name = f"{done['code']} {done['name']}"
        self.counted[f"refused: {name}"] += 1
        if done["code"] == 2 or done["name"] == "branch-closed":  # the command asks for what there is not
            return False
        ways = self._ways(line, done)
        self.check(ways and depth < DEPTH, f"no way out of {name}: {done['message']}")
        way = self.rng.choice(ways)
        self.log.append(f"follows {way}")
        self.counted["advice followed"] += 1
        self.counted[f"followed: {name}"] += 1
        if callable(way):
            if way():
                return True
        elif not all(self.perform(step, depth=depth + 1) for step in way):
            return False
        elif {line, f"{line} --accept-changes"}.intersection(way) or (not _goes_on(line) and any(map(_decides, way))):
            return True
        return done["code"] == ON_HOLD or self.perform(line, depth=depth + 1)

    def _ways(self, line: str, done: dict[str, Any]) -> list[Any]:
        """Return the ways out that a message names: command lines, or what a person does by hand."""
        message, ways, together = done["message"], list[Any](), list[str]()
        self.branch += 1
        for named in fixes(message):
            fix = named.replace("FEED", "activity").replace("JOB", "counts")
            fix = {"land": "land activity", "republish": "republish counts"}.get(fix, fix)
            if fix.endswith(" NAME"):
                together.append(fix.replace("NAME", f"way-{self.branch}"))
            elif not re.search(r"[A-Z]{3,}", fix) and fix.split()[0] not in SHOWS:
                ways.append([fix])
        ways += [together] if together else []
        if "--accept-changes" in message and "--accept-changes" not in line:
            ways.append([f"{line} --accept-changes"])
        if self.repairs and re.search("[Rr]estore|[Ff]ix|wait for it", message):
            ways.append(self.repaired)
        if "heck out the" in message:
            ways.append(partial(self._checked_out, line, done["run"]))
        if "remove the folder _delta_log" in message:
            log = Path(done["path"]) / "_delta_log"
            ways = [way if callable(way) else partial(self._without_log, log, way[0]) for way in ways]
        return ways

    def _checked_out(self, line: str, name: str) -> bool:
        """Call a command with the code of an earlier run. Return whether it succeeded."""
        code = self.known.code
        self._code(next(run.code for runs in self.known.branches.values() for run in runs if run.name == name))
        is_done = self.perform(line, depth=1)
        self._code(code)
        return is_done

    def _without_log(self, log: Path, line: str) -> None:
        shutil.rmtree(log)
        self.repairs.clear()  # the file that was broken is not needed any more
        self.perform(line, depth=1)

    # --- what is seen -----------------------------------------------------------------------------------------------------

    def compare(self, line: str) -> None:
        """Compare the runs and the published rows of every branch with the naive count."""
        if self.is_altered:
            self._learn_names()
            return
        names = list(self.known.branches)
        found = answer(partial(seen, str(self.bench.root), names))
        for name in names:
            runs, rows = found[name]
            mine = self.known.branches[name]
            self.check(runs is not None, f"{line}: `show` of {name} is refused")
            self.check(
                [records for _, records in runs] == [sum(map(len, run.landings)) for run in mine],
                f"{line}: other runs of {name}: {runs} and not {[list(map(len, run.landings)) for run in mine]}",
            )
            for run, (known, _) in zip(mine, runs, strict=True):
                self.check(run.name in ("", known), f"run {run.name} is {known}")
                run.name = known
            expected = self.known.published(name)
            self.check(
                [tuple(row) for row in rows] == expected,
                f"{line}: rows of {name}: {[row for row in rows if tuple(row) not in expected]} too many,"
                f" {[row for row in expected if list(row) not in rows]} too few, {len(rows)} for {len(expected)}",
            )

    def _learn_names(self) -> None:
        """Take the names of new runs from `show`, if what is lost does not prevent it. An advice may accept such a run."""
        shown = answer(partial(runs_shown, str(self.bench.root), list(self.known.branches)))
        for branch, mine in self.known.branches.items():
            for run, (name, _) in zip(mine, shown[branch] or (), strict=False):
                # A name that is known stays, so that `compare` notices a run with another name.
                run.name = run.name or name

    # --- events -----------------------------------------------------------------------------------------------------------

    def new_file(self) -> None:
        """Write the file of the next hour, or a late one, perhaps with a fault that its owner repairs on demand."""
        is_late = self.hour > 1 and self.rng.random() < 0.3
        hour = self.rng.randrange(self.hour) if is_late else self.hour
        self.hour += not is_late
        rows = []
        for n in range(self.rng.randint(4, 12)):
            got = T0 + hour * HOUR + n * 290_000 + self.rng.randrange(1000) * 2 + is_late
            t = got - self.rng.choice([0, 1, 1000, 600_000, 2_400_000])
            rows.append(
                Row(got, self.rng.choice(USERS), t, 4000 if self.rng.random() < 0.03 else self.rng.randint(1, 9))
            )
        if self.rng.random() < 0.1:
            rows[-1] = rows[-1]._replace(t=rows[-1].got + 2 * MAX_AHEAD)
        name = f"data/f{len(self.known.files):03}.csv"
        self.log.append(f"writes {name} of hour {hour}, {len(rows)} rows")
        if self.rng.random() < 0.2:
            broken = self.rng.choice(
                [_text(rows) + "ann,soon,1,1\n", _text(rows) + "ann,1\n", _text(rows)[:-3] + '"', "\0\1"]
            )
            self.bench.write(name, broken)
            self.repairs.append(partial(self._source, name, rows))
            self.log.append(f"{name} is broken: {broken[-20:]!r}")
            self.perform(self.land_words())
            self.repaired()
            self.perform(self.land_words())
        else:
            self._source(name, rows)

    def _source(self, name: str, rows: list[Row]) -> None:
        self.bench.write(name, _text(rows))
        self.known.files[name] = rows

    def altered_source(self) -> None:
        """Somebody appends to a file that may be landed."""
        name = self.rng.choice(sorted(self.known.files))
        rows = self.known.files[name]
        self.log.append(f"alters {name}")
        self._source(name, [*rows, rows[-1]._replace(got=rows[-1].got + 1)])
        landed = {row for landing in self.known.landings for row in landing}
        if landed.intersection(rows):
            generation = self.known.generation
            self.repairs.append(lambda: self._source(name, rows) if self.known.generation == generation else None)
        self.perform(self.land_words())
        self.repaired()

    def _code(self, code: int) -> None:
        self.known.code = code
        self.bench.write("bench_job.py", topology(TOPOLOGY % code))

    def new_code(self) -> None:
        self._code(self.known.code + 1)
        self.log.append(f"code {self.known.code}")

    def look(self) -> None:
        self.perform(self.rng.choice(LOOKS))

    def change(self) -> None:
        """Call a command that changes something. A third of them is killed first."""
        self.perform(self._changing(), is_killed=self.rng.random() < 0.4)

    def _changing(self) -> str:
        known, rng = self.known, self.rng
        others = [name for name in known.branches if name != MAIN]
        runs = [run.name for run in known.branches[MAIN]]
        lines = (
            [self.land_words()] * 5
            + ["run counts"] * 6
            + ["republish counts", "republish counts --all", "gc", "verify counts"]
        )
        lines += ["gc counts --keep 1h", f"{self.land_words().replace('land activity', 'run counts --land')}"]
        lines += [f"run counts --through {rng.randint(1, len(known.landings))}"] * 2 if known.landings else []
        if runs:
            self.branch += 1
            lines += [f"backfill counts --from {rng.randint(1, len(known.taken(MAIN)))} --branch b{self.branch}"] * 3
            lines += [f"rewind counts --to {rng.choice([*runs, '0'])}"] * 2
            lines += ["reset counts --yes"]
        for name in others:
            lines += [f"promote counts {name}"] * 2 + [f"branch drop counts {name}", f"run counts --branch {name}"]
            lines += [f"diff counts main {name}"]
        return rng.choice(lines)

    def lost(self) -> None:
        """A file of the warehouse is deleted, cut short or a table replaced by an older copy. Then commands notice it."""
        warehouse = self.bench.warehouse
        files = sorted(path for path in warehouse.glob("**/*") if path.is_file() and "heartbeats" not in path.parts)
        files = [
            path
            for path in files
            if path.suffix in {".parquet", ".json"} and (path.suffix == ".parquet" or _is_newest(path))
        ]
        if not files:
            return
        path, how = self.rng.choice(files), self.rng.choice(["deleted", "cut short", "older"])
        table = next(parent for parent in path.parents if (parent / "_delta_log").is_dir())
        is_ledger = table.name in {"runs", "landings"}
        older = self.older / table.relative_to(warehouse)
        if is_ledger:
            path, how = max((table / "_delta_log").glob("*.json")), "cut short"
        if how == "older" and older.exists() and "logs" not in table.parts:
            kept = self.temporary / "newest"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(table, kept)
            shutil.rmtree(table)
            shutil.copytree(older, table)
            self.repairs.append(lambda: None)
        else:
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2]) if how == "cut short" else path.unlink()
            self.repairs.append(partial(_written, path, data))
        self.log.append(f"{how}: {path.relative_to(warehouse)}")
        self.counted["faults"] += 1
        self.is_altered = True
        self.perform(self.rng.choice([*LOOKS, "run counts", "verify counts", self.land_words(), "republish counts"]))
        for name in [name for name, runs in self.known.branches.items() if runs or name == MAIN]:
            self.perform(f"republish counts --branch {name}")
        self.repaired()
        self.is_altered = False
        self.compare("republish counts")
        if self.known.branches[MAIN]:
            self.perform("verify counts")

    def repaired(self) -> None:
        """Do by hand what messages ask for: restore what was lost, and fix source files."""
        while self.repairs:
            self.repairs.pop()()

    def copied(self) -> None:
        """Somebody copies the warehouse."""
        shutil.rmtree(self.older, ignore_errors=True)
        if self.bench.warehouse.exists():
            shutil.copytree(self.bench.warehouse, self.older)


EVENTS: tuple[tuple[Callable[[History], None], float], ...] = (
    (History.new_file, 4),
    (History.change, 10),
    (History.look, 2),
    (History.new_code, 1),
    (History.altered_source, 0.4),
    (History.lost, 1.6),
    (History.copied, 1),
)


def _decides(line: str) -> bool:
    """Return whether a command changes what is decided, so that the one that was refused may make no sense any more."""
    return line.split(maxsplit=1)[0] in {"rewind", "reset", "backfill", "branch"} or "--branch" in line


def _goes_on(line: str) -> bool:
    """Return whether a command must succeed whatever has been decided meanwhile."""
    return line.startswith(("land", "run")) and "--branch" not in line


def _good(words: Sequence[str]) -> set[int]:
    return {0, 1} if words[0] in FINDS else {0, ON_HOLD} if words[0] in {"run", "backfill"} else {0}


def _iso(hour: int) -> str:
    return pendulum.from_timestamp((T0 + hour * HOUR) / 1000).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(rows: Sequence[Row]) -> str:
    return "user,t,got,x\n" + "".join(f"{row.user},{row.t},{row.got},{row.x}\n" for row in rows)


def _is_newest(path: Path) -> bool:
    return path.parent.name == "_delta_log" and path == max(path.parent.glob("*.json"))


def _written(path: Path, data: bytes) -> None:
    if path.parent.exists():
        path.write_bytes(data)


def called(root: str, words: list[str]) -> dict[str, Any]:
    """Run a command line in this process. Return its exit code, the code and text of its refusal, and what it printed."""
    with quiet() as (out, err), without_spark():
        done = Bench(Path(root)).run(*words)
    said = done.out + done.err + out.getvalue() + err.getvalue()
    if (failure := done.failure) is None:
        return {"code": done.code, "name": "", "message": said if done.code else "", "said": said}
    facts = {name: str(failure.facts.get(name, "")) for name in ("path", "run")}
    return {"code": done.code, "name": failure.code, "message": failure.message, "said": said, **facts}


Runs = list[tuple[str, int]] | None
"""The runs of a branch with the number of their records; None if `show` is refused."""


def runs_shown(root: str, names: list[str]) -> dict[str, Runs]:
    """Return the runs of each branch."""
    answers = {name: call(root, ("show", "counts", "--branch", name, "--json")) for name in names}
    return {
        name: None if done["code"] else [(run["run"], run["records"]) for run in json.loads(done["said"])["runs"]]
        for name, done in answers.items()
    }


def seen(root: str, names: list[str]) -> dict[str, tuple[Runs, list[Total]]]:
    """Return the runs of each branch, and its published rows."""
    found = {}
    for name, runs in runs_shown(root, names).items():
        table = Path(root, "warehouse/alerts", "totals" if name == MAIN else f"totals__{name}")
        rows = read_rows(str(table)).to_pylist() if table.exists() else []
        totals = sorted((row["user"], row["window_start"], row["total"]) for row in rows)
        found[name] = runs, totals
    return found


def play(seed: int) -> Outcome:
    """Play a history. The outcome tells what was counted in it."""
    with folder() as root:
        history = History(Path(root), seed)
        try:
            history.play()
        except Exception as error:  # noqa: BLE001 - a history that cannot go on is reported, and the others are played
            return Outcome("history", seed, "commands", f"wrong: {type(error).__name__}: {error}")
        return Outcome("history", seed, "commands", f"ok / {json.dumps(history.counted)}")


def suite(settings: Settings) -> Figures:
    """Play histories of the seeds 0, 1, 2 ..."""
    figures, results = Figures("histories"), Results.of("histories", settings.results)
    warm_up()
    seeds = range(QUICK_HISTORIES if settings.quick else HISTORIES)
    left = [seed for seed in seeds if not results.knows("history", seed, "commands")]
    results.keep(outcomes([partial(play, seed) for seed in left], settings.at_once), settings.say)
    counted: Counter[str] = Counter()
    for (_, seed, _), said in results.said.items():
        word, _, more = said.partition(" / ")
        figures.count(word, f"history {seed}")
        counted.update(json.loads(more) if word == "ok" else {})
    figures.more = dict(sorted(counted.items()))
    return figures
