"""Measures one call in its own process: time and peak memory."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast import compact


class Measurement(msgspec.Struct, frozen=True):
    seconds: float
    peak: int
    """Peak growth of the process in bytes."""
    result: float = 0.0
    """The value returned by the call: tokens, a gap."""


def run_alone(module: str, *arguments: str) -> Measurement:
    """Runs `python -m module arguments`, which must end in `report_call`."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Measurement)


def warm_up() -> None:
    """Loads the vocabulary and the weights, which happens once per process."""
    history = [{"role": role, "content": f"{role} qxzzyq " * 200} for role in ("user", "assistant") * 4]
    compact([*history, {"role": "user", "content": "And?"}], budget=1_000)


def report_call(call: Callable[[], float]) -> None:
    """Measures this call and prints the result for the parent process."""
    before = _peak_memory()
    results = []
    taken = seconds(lambda: results.append(call()))
    print_measurement(Measurement(taken, _peak_memory() - before, results[0]))


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def print_measurement(measured: Measurement) -> None:
    print(msgspec.json.encode(measured).decode())


def _peak_memory() -> int:
    """Peak memory of this process, without its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) * 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
