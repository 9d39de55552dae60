"""Everything that must hold before a change is good, from nothing but Python 3.11 or newer.

Makes `.venv`, installs what `requirements-dev.txt` pins (by uv, or by pip where uv cannot), and runs the
formatter, the linter, the type checker, the directions of import, and all tests.
`python3 scripts/check.py tests/view -x` runs some tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CODE = ["src", "tests", "scripts", "benchmarks"]
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")


def main(chosen: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036
        print("Holdfast needs Python 3.11 or newer: run this script with one.")
        return 2
    python = str(BIN / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = ["--require-hashes", "-r", "requirements-dev.txt"]
    with_uv = [python, "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *pinned]
    # The tests are compiled once, beside the type checker, which takes one core, and not by every worker.
    compiling = [python, "-m", "pytest", "--collect-only", "-q", *chosen]
    workers = str((os.cpu_count() or 1) + 1)  # one more than there are cores: tests also wait, for servers
    steps = [
        ("environment", [sys.executable, "-m", "venv", *(["--clear"] if another_python() else []), str(VENV)]),
        ("installer", [*pip, "--require-hashes", "-r", "requirements-uv.txt"]),
        ("dependencies", with_uv, [*pip, *pinned]),
        ("holdfast", [*pip, "--no-deps", "--no-build-isolation", "--editable", "."]),
        ("format", [python, "-m", "ruff", "format", "--check", "--quiet", *CODE]),
        ("lint", [python, "-m", "ruff", "check", "--quiet", *CODE]),
        ("types", [python, "-m", "mypy"]),
        ("directions", [python, "scripts/directions.py"]),
        ("tests", [python, "-m", "pytest", "-n", workers, "-q", *chosen]),
    ]
    for name, *ways in steps:
        started = time.monotonic()
        beside = start(compiling, subprocess.DEVNULL) if name == "types" else None
        done = any(start(way).wait() == 0 for way in ways)
        if beside:
            beside.wait()
        took = time.monotonic() - started
        print(f"{name}: {'ok' if done else 'FAILED'} in {took:.0f} s", flush=True)
        if not done:
            return 1
    return 0


def start(command: Sequence[str], output: int | None = None) -> subprocess.Popen[bytes]:
    """What is compiled is kept, whatever is set: hundreds of processes are started by the tests."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(command, cwd=ROOT, env=kept, stdout=output)


def another_python() -> bool:
    """Was the environment made with another Python? Then it must be made anew."""
    made = VENV / "pyvenv.cfg"
    settings = dict(line.split(" = ", 1) for line in made.read_text().splitlines()) if made.exists() else {}
    return bool(settings) and settings.get("version") != ".".join(map(str, sys.version_info[:3]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
