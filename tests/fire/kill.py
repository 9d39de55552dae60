"""A process appends and compacts until it is killed, at any moment; then the next goes on in the same log (H1).

Usage: python tests/fire/kill.py [--rounds 50] [--store sqlite|jsonl]

What was acknowledged is there once, nothing is half there, and the session goes on.
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

from fire.examination import Finding, examine
from fire.two_writers import SCRIPT, begin, place_for
from fire.words import Appended, Compacted, Word, hear

ROUNDS_EACH = 10
"""Rounds in one log, before the next begins with a new one."""
EARLY = 0.2
"""How many are killed while they start, and perhaps mend what the last one left."""


def kill_one(store: str, output: Path, chance: random.Random) -> list[Word]:
    """Start a writer, kill it at a random moment, and return what it had said."""
    with output.open("wb") as file:
        writer = subprocess.Popen([sys.executable, SCRIPT, store, output.stem, "60"], stdout=file)
    if chance.random() > EARLY:
        while not output.stat().st_size and writer.poll() is None:
            time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.3))
    writer.kill()
    writer.wait()
    return hear(output)


def half_done(words: list[list[Word]], finding: Finding) -> list[str]:
    """Of each writer, at most the one append that it had no time to tell of may be in the log as well."""
    told = sum(len(word.ids) for said in words for word in said if isinstance(word, Appended))
    untold = finding.events - finding.compactions - told
    return [] if 0 <= untold <= 4 * len(words) else [f"{untold} events are in the log that nobody told of"]


def rounds(kind: str, folder: Path, number: int, chance: random.Random) -> Iterator[tuple[Finding, list[Word]]]:
    """Kill as many writers as asked, one after the other, and examine the log after each."""
    said: list[list[Word]] = []
    store = ""
    for place in range(number):
        if place % ROUNDS_EACH == 0:
            here = folder / f"{kind}{place}"
            here.mkdir()
            store, said = place_for(kind, here), []
            asyncio.run(begin(store))
        said.append(kill_one(store, folder / f"{kind}-{place}.txt", chance))
        finding = asyncio.run(examine(store, said, killed=True))
        finding.problems += half_done(said, finding)
        yield finding, said[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="on each store")
    parser.add_argument("--store", choices=("sqlite", "jsonl"), action="append")
    given = parser.parse_args()
    failed = False
    for kind in given.store or ("sqlite", "jsonl"):
        problems: list[str] = []
        events = compactions = torn = silent = 0
        with tempfile.TemporaryDirectory() as folder:
            for finding, words in rounds(kind, Path(folder), given.rounds, random.Random()):
                problems += finding.problems
                events += sum(len(word.ids) for word in words if isinstance(word, Appended))
                compactions += sum(word.outcome == "compacted" for word in words if isinstance(word, Compacted))
                torn += finding.torn > 0
                silent += not words
        print(f"{kind}: {given.rounds} killed, {silent} of them before their first word")
        print(f"  acknowledged: {events} events, {compactions} compactions; torn ends seen after {torn} rounds")
        print(f"  problems: {len(problems)}", *problems[:20], sep="\n  ")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
