"""All benchmarks, or one: `python -m benchmarks [--quick] [--only NAME] [--json]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

import msgspec

from . import (
    abort,
    cost,
    hostile,
    imports,
    langchain,
    ledger,
    opening,
    per_step,
    postgres,
    search,
    sqlite_append,
)
from .measure import Options, Ratio

ALL: dict[str, Callable[[Options], Iterable[Ratio]]] = {
    "per-step": per_step.run,
    "opening": opening.run,
    "sqlite-append": sqlite_append.run,
    "search": search.run,
    "postgres": postgres.run,
    "langchain": langchain.run,
    "imports": imports.run,
    "ledger": ledger.run,
    "hostile": hostile.run,
    "cost": cost.run,
    "abort": abort.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios, each measured within this run.")
    parser.add_argument("--quick", action="store_true", help="smaller sessions: a first look")
    parser.add_argument("--only", choices=ALL, action="append", help="one benchmark; may be given again")
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    given = parser.parse_args()
    for name in given.only or ALL:
        for ratio in ALL[name](Options(quick=given.quick)):
            print(_json(ratio) if given.json else _line(ratio))
            sys.stdout.flush()


def _json(ratio: Ratio) -> str:
    return msgspec.json.encode({**msgspec.to_builtins(ratio), "met": ratio.met}).decode()


def _line(ratio: Ratio) -> str:
    aim = "stated" if ratio.aim is None else f"{ratio.wanted} {ratio.aim:g}"
    met = {True: "met", False: "MISSED", None: ""}[ratio.met]
    timed = ", ".join(f"{name} {_time(value)}" for name, value in ratio.seconds.items())
    return f"{ratio.name:48}{ratio.ratio:10.2f}  {aim:14}{met:8}{ratio.compares}{f' ({timed})' if timed else ''}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
