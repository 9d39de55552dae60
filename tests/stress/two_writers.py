"""Two processes append to one session and compact it at the same time (S3, H1).

Usage: python tests/stress/two_writers.py [--seconds 30] [--store sqlite|jsonl]

The loser of each race reports a conflict, and nothing that either wrote is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import SessionService, open_store
from stress.log_check import LogCheck, check_log
from stress.reports import Appended, Compacted, Report, read_reports
from stress.writer import FORMAT, SESSION

SCRIPT = Path(__file__).with_name("writer.py")
NAMES = ("anna", "ben")


async def begin(store: str) -> None:
    async with SessionService(open_store(store)) as service:
        await service.create(id=SESSION, format=FORMAT)


def race(store: str, place: Path, seconds: float, least: int | None = None) -> tuple[LogCheck, Counter[str]]:
    """Lets both write for some seconds, or until so many won and lost; then checks the log and counts the outcomes."""
    asyncio.run(begin(store))
    outputs = [place / f"{name}.txt" for name in NAMES]
    stop = place / "stop"
    writers = []
    for name, output in zip(NAMES, outputs, strict=True):
        with output.open("wb") as file:
            command = [sys.executable, SCRIPT, store, name, str(seconds), stop]
            writers.append(subprocess.Popen(command, stdout=file))
    while least is not None and all(writer.poll() is None for writer in writers):
        counts = count_outcomes([read_reports(output) for output in outputs])
        if min(counts["compacted"], counts["conflict"]) >= least:
            stop.touch()
            break
        time.sleep(0.05)
    codes = [writer.wait() for writer in writers]
    reports = [read_reports(output) for output in outputs]
    check = asyncio.run(check_log(store, reports))
    check.problems += [f"{name} ended with {code}" for name, code in zip(NAMES, codes, strict=True) if code]
    return check, count_outcomes(reports)


def count_outcomes(reports: list[list[Report]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for item in (item for own in reports for item in own):
        if isinstance(item, Compacted):
            counts[item.outcome] += 1
            counts[f"{item.outcome} ({item.mode})"] += 1
        elif isinstance(item, Appended):
            counts["appended"] += len(item.ids)
    return counts


def store_address(kind: str, folder: Path) -> str:
    return f"sqlite:///{folder / 's.db'}" if kind == "sqlite" else f"jsonl:{folder / 'files'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--store", choices=("sqlite", "jsonl"), default="sqlite")
    parser.add_argument("--least", type=int, default=100, help="how many must win, and how many lose")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check, counts = race(store_address(given.store, Path(folder)), Path(folder), given.seconds)
    print(f"{given.store}, {given.seconds:g} s: {check.events} events, {check.compactions} compactions in the log")
    for name, count in sorted(counts.items()):
        print(f"  {name:32}{count:8}")
    for outcome in ("compacted", "conflict"):
        if counts[outcome] < given.least:
            check.problems.append(f"only {counts[outcome]} of the outcome {outcome}: at least {given.least} are due")
    print(f"  {'problems':32}{len(check.problems):8}")
    print(*check.problems[:20], sep="\n")
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main())
