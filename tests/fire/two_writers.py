"""Two processes append to one session and compact it at the same time (S3, H1).

Usage: python tests/fire/two_writers.py [--seconds 30] [--store sqlite|jsonl]

One of them loses each race that there is, says so, and nothing that either wrote is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fire.examination import Finding, examine
from fire.words import Appended, Compacted, hear
from fire.writer import FORMAT, SESSION
from holdfast import SessionService, open_store

SCRIPT = Path(__file__).with_name("writer.py")
NAMES = ("anna", "ben")


async def begin(store: str) -> None:
    async with SessionService(open_store(store)) as service:
        await service.create(id=SESSION, format=FORMAT)


def race(store: str, place: Path, seconds: float) -> tuple[Finding, Counter[str]]:
    """Let both write for this long, then examine the log; and count what came of it."""
    asyncio.run(begin(store))
    outputs = [place / f"{name}.txt" for name in NAMES]
    writers = []
    for name, output in zip(NAMES, outputs, strict=True):
        with output.open("wb") as file:
            writers.append(subprocess.Popen([sys.executable, SCRIPT, store, name, str(seconds)], stdout=file))
    codes = [writer.wait() for writer in writers]
    said = [hear(output) for output in outputs]
    finding = asyncio.run(examine(store, said))
    finding.problems += [f"{name} ended with {code}" for name, code in zip(NAMES, codes, strict=True) if code]
    counts: Counter[str] = Counter()
    for word in (word for words in said for word in words):
        if isinstance(word, Compacted):
            counts[word.outcome] += 1
            counts[f"{word.outcome} ({word.mode})"] += 1
        elif isinstance(word, Appended):
            counts["appended"] += len(word.ids)
    return finding, counts


def place_for(kind: str, folder: Path) -> str:
    return f"sqlite:///{folder / 's.db'}" if kind == "sqlite" else f"jsonl:{folder / 'files'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--store", choices=("sqlite", "jsonl"), default="sqlite")
    parser.add_argument("--least", type=int, default=100, help="how many must win, and how many lose")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        finding, counts = race(place_for(given.store, Path(folder)), Path(folder), given.seconds)
    print(f"{given.store}, {given.seconds:g} s: {finding.events} events, {finding.compactions} compactions in the log")
    for name, count in sorted(counts.items()):
        print(f"  {name:32}{count:8}")
    for outcome in ("compacted", "conflict"):
        if counts[outcome] < given.least:
            finding.problems.append(f"only {counts[outcome]} of the outcome {outcome}: at least {given.least} are due")
    print(f"  {'problems':32}{len(finding.problems):8}")
    print(*finding.problems[:20], sep="\n")
    return 1 if finding.problems else 0


if __name__ == "__main__":
    sys.exit(main())
