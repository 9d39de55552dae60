"""A process appends and compacts until it is killed at a random moment; the next continues in the same log (H1).

Usage: python -m tests.stress.kill [--rounds 50] [--points 10000] [--store sqlite|jsonl|postgres]

Acknowledged events must be stored once, no append in part, and the session must be usable. With `--points`, processes
are killed at every system call that writes instead, in every operation (`kill_points.py`; Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stress.kill_points import kill_everywhere
from stress.log_check import LogCheck, check_log
from stress.reports import Appended, Compacted, Report, read_reports
from stress.scenes import scene_of
from stress.two_writers import SCRIPT, begin, store_address

ROUNDS_EACH = 10
"""Rounds per log."""
EARLY = 0.2
"""Fraction killed while starting, possibly while recovering from the previous kill."""


def kill_one(store: str, output: Path, chance: random.Random) -> list[Report]:
    """Starts a writer, kills it at a random moment, and returns its reports."""
    with output.open("wb") as file:
        writer = subprocess.Popen([sys.executable, SCRIPT, store, output.stem, "60"], stdout=file)
    if chance.random() > EARLY:
        while not output.stat().st_size and writer.poll() is None:
            time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.3))
    writer.kill()
    writer.wait()
    return read_reports(output)


def unreported_events(reports: list[list[Report]], check: LogCheck) -> list[str]:
    """At most one append per writer may be in the log without having been reported."""
    reported = sum(len(item.ids) for own in reports for item in own if isinstance(item, Appended))
    unreported = check.events - check.compactions - reported
    return [] if 0 <= unreported <= 4 * len(reports) else [f"{unreported} events in the log were not reported"]


def run_rounds(kind: str, folder: Path, number: int, chance: random.Random) -> Iterator[tuple[LogCheck, list[Report]]]:
    """Kills `number` writers, one after the other, and checks the log after each."""
    reports: list[list[Report]] = []
    store = ""
    for place in range(number):
        if place % ROUNDS_EACH == 0:
            here = folder / f"{kind}{place}"
            here.mkdir()
            store, reports = store_address(kind, here), []
            asyncio.run(begin(store))
        reports.append(kill_one(store, folder / f"{kind}-{place}.txt", chance))
        check = asyncio.run(check_log(store, reports, killed=True))
        check.problems += unreported_events(reports, check)
        yield check, reports[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="on each store")
    parser.add_argument("--points", type=int, help="kill at this many system calls, in all")
    parser.add_argument("--operation", action="append", help="kill in this operation only; default: in all")
    parser.add_argument("--store", choices=("sqlite", "jsonl", "postgres"), action="append")
    given = parser.parse_args()
    kinds = given.store or ["sqlite", "jsonl"]
    if given.points:
        return kill_at_points(kinds, given.points, given.operation)
    return kill_at_random(kinds, given.rounds)


def kill_at_points(kinds: list[str], points: int, chosen: list[str] | None) -> int:
    """Kills at system calls, as many on each store; returns the exit code."""
    total = problems = 0
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder, scene_of(kind, Path(folder)) as scene:
            counts = kill_everywhere(scene, points // len(kinds), random.Random(), chosen)
        print(f"{kind}: {counts.points} points, {counts.torn} in the middle of a write")
        print(f"  after the acknowledgement: {counts.acknowledged}")
        for name, number in counts.taken.items():
            print(f"  {name:40}{number:8}")
        print(f"  problems: {len(counts.problems)}", *counts.problems[:20], sep="\n  ", flush=True)
        total, problems = total + counts.points, problems + len(counts.problems)
    print(f"{total} points, {problems} problems")
    return 1 if problems else 0


def kill_at_random(kinds: list[str], rounds: int) -> int:
    """Kills at random moments; returns the exit code."""
    failed = False
    for kind in kinds:
        problems: list[str] = []
        events = compactions = torn = silent = 0
        with tempfile.TemporaryDirectory() as folder:
            for check, reports in run_rounds(kind, Path(folder), rounds, random.Random()):
                problems += check.problems
                events += sum(len(item.ids) for item in reports if isinstance(item, Appended))
                compactions += sum(item.outcome == "compacted" for item in reports if isinstance(item, Compacted))
                torn += check.torn > 0
                silent += not reports
        print(f"{kind}: {rounds} killed, {silent} of them before their first report")
        print(f"  acknowledged: {events} events, {compactions} compactions; torn ends seen after {torn} rounds")
        print(f"  problems: {len(problems)}", *problems[:20], sep="\n  ")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
