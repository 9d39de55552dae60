"""Runs every check that a change must pass. Needs only Python 3.11 or newer.

Creates `.venv`, installs the pinned `requirements-dev.txt` (with uv, or pip as a fallback), and runs the formatter, the
linter, the type checker, the documentation build, the import direction check, and all tests.
`python3 scripts/check.py tests/context -x` runs some tests only. `python3 scripts/check.py --frameworks` runs the tests
of agent frameworks that cannot be installed next to the rest, in `.venv-frameworks`, by `requirements-frameworks.txt`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ["src", "tests", "scripts", "benchmarks", "examples"]
FRAMEWORKS = "--frameworks"
FRAMEWORK_TESTS = "tests/integrations"


def main(chosen: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036
        print("Holdfast needs Python 3.11 or newer: run this script with one.")
        return 2
    separate = FRAMEWORKS in chosen
    chosen = [argument for argument in chosen if argument != FRAMEWORKS]
    if separate and not any(argument.startswith("tests") for argument in chosen):
        chosen.append(FRAMEWORK_TESTS)
    venv = ROOT / (".venv-frameworks" if separate else ".venv")
    python = str(venv / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = ["--require-hashes", "-r", f"requirements-{'frameworks' if separate else 'dev'}.txt"]
    with_uv = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, *pinned]
    # Byte-compiles the tests and what they import once, instead of in every worker; dependencies may warn meanwhile.
    compiling = [python, "-W", "ignore", "-m", "pytest", "-W", "ignore", "--collect-only", "-q", *chosen]
    workers = str(2 * (os.cpu_count() or 1))  # tests also wait for servers
    steps: dict[str, list[list[str]]] = {  # the alternatives of a step are tried in turn
        "environment": [[sys.executable, "-m", "venv", *(["--clear"] if another_python(venv) else []), str(venv)]],
        "installer": [[*pip, "--require-hashes", "-r", "requirements-uv.txt"]],
        "dependencies": [with_uv, [*pip, *pinned]],
        "holdfast": [[*pip, "--no-deps", "--no-build-isolation", "--editable", "."]],
        "format": [[python, "-m", "ruff", "format", "--check", "--quiet", *CODE]],
        "lint": [[python, "-m", "ruff", "check", "--quiet", *CODE]],
        "types": [[python, "-m", "mypy"]],
        "docs": [[python, "-m", "mkdocs", "build", "--strict"]],
        "directions": [[python, "scripts/directions.py"]],
        "words": [[python, "scripts/words.py"]],
        "tests": [
            [
                *(python, "-m", "pytest", "-n", workers, "--dist", "worksteal", "-q"),
                *(["-W", "ignore"] if separate else []),
                *chosen,
            ]
        ],
    }
    if separate:  # the frameworks' own warnings are ignored; everything else has been checked without them
        steps = {name: steps[name] for name in ("environment", "installer", "dependencies", "holdfast", "tests")}
    parallel: dict[str, subprocess.Popen[bytes]] = {}
    for name, alternatives in steps.items():
        started = time.monotonic()
        if name == "types":
            parallel = {other: start(steps[other][0]) for other in ("types", "docs", "directions", "words")}
            start(compiling, subprocess.DEVNULL).wait()
        running = parallel.pop(name, None)
        done = running.wait() == 0 if running else any(start(command).wait() == 0 for command in alternatives)
        took = time.monotonic() - started
        print(f"{name}: {'ok' if done else 'FAILED'} in {took:.0f} s", flush=True)
        if not done:
            for process in parallel.values():
                process.terminate()
                process.wait()
            return 1
    return 0


def start(command: Sequence[str], output: int | None = None) -> subprocess.Popen[bytes]:
    """Starts a process with byte-code caching on: the tests start hundreds of processes."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    kept["NO_MKDOCS_2_WARNING"] = "1"  # the theme's announcement of its successor
    return subprocess.Popen(command, cwd=ROOT, env=kept, stdout=output)


def another_python(venv: Path) -> bool:
    """True if the environment was created by another Python version and must be recreated."""
    made = venv / "pyvenv.cfg"
    settings = dict(line.split(" = ", 1) for line in made.read_text().splitlines()) if made.exists() else {}
    return bool(settings) and settings.get("version") != ".".join(map(str, sys.version_info[:3]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
