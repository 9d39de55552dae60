"""One thing measured alone, in a process of its own: what it takes, and the most memory it ever had."""

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


class Measured(msgspec.Struct, frozen=True):
    seconds: float
    peak: int
    """Bytes that the process grew by, at most."""
    result: float = 0.0
    """What was counted or measured: tokens, a gap."""


def alone(module: str, *arguments: str) -> Measured:
    """Run `python -m module arguments`, which ends in `report`."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Measured)


def warm_up() -> None:
    """What is done once in a process: loading the vocabulary and the weights."""
    told = [{"role": role, "content": f"{role} qxzzyq " * 200} for role in ("user", "assistant") * 4]
    compact([*told, {"role": "user", "content": "And?"}], budget=1_000)


def report(call: Callable[[], float]) -> None:
    """Measure this call and print it for the process that waits."""
    before = _most()
    results = []
    taken = seconds(lambda: results.append(call()))
    tell(Measured(taken, _most() - before, results[0]))


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def tell(measured: Measured) -> None:
    print(msgspec.json.encode(measured).decode())


def _most() -> int:
    """The most memory that this process ever had; that of the one which started it does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) * 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
