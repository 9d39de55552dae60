"""All benchmarks, or one: `python -m benchmarks [--quick] [--only NAME] [--json]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from importlib import import_module

import msgspec

from benchmarks.measure import Options, Ratio

ALL = (
    "per-step",
    "keeper-step",
    "opening",
    "sqlite-append",
    "search",
    "deleting",
    "postgres",
    "langchain",
    "imports",
    "ledger",
    "hostile",
    "linear",
    "cost",
    "abort",
    "gateway",
    "gateway-cache",
    "gateway-large",
    "inspector",
    "integrations",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios, each measured within this run.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--only", choices=ALL, action="append", help="run only this benchmark; repeatable")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line instead of the table")
    arguments = parser.parse_args()
    for name in arguments.only or ALL:
        for ratio in _benchmark(name)(Options(quick=arguments.quick)):
            print(_json(ratio) if arguments.json else _line(ratio))
            sys.stdout.flush()


def _benchmark(name: str) -> Callable[[Options], Iterable[Ratio]]:
    """Imports one benchmark: each needs only its own packages."""
    run: Callable[[Options], Iterable[Ratio]] = import_module(f"benchmarks.{name.replace('-', '_')}").run
    return run


def _json(ratio: Ratio) -> str:
    return msgspec.json.encode({**msgspec.to_builtins(ratio), "met": ratio.met}).decode()


def _line(ratio: Ratio) -> str:
    aim = "reported" if ratio.aim is None else f"{ratio.wanted} {ratio.aim:g}"
    met = {True: "met", False: "MISSED", None: ""}[ratio.met]
    timed = ", ".join(f"{name} {_time(value)}" for name, value in ratio.seconds.items())
    return f"{ratio.name:48}{ratio.ratio:10.2f}  {aim:14}{met:8}{ratio.compares}{f' ({timed})' if timed else ''}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
