"""Breaks the core in known ways, one at a time, and lists the test that notices each (H1, S3).

Usage: python -m tests.stress.mutations [--only TEXT]

Each mutation is applied to a copy of the package, and the tests named with it run on that copy. A mutation that no
test notices is printed as SURVIVED, and the exit code is 1: it needs a test.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stress.mutation import Mutation
from stress.mutation_list import MUTATIONS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
TESTS_FAILED = 1
"""Exit code of pytest when tests ran and some failed."""


def mutated_text(mutation: Mutation) -> str:
    """Returns the file with its replacements; each text must occur in it once."""
    text = (PACKAGE / mutation.file).read_text(encoding="utf-8")
    for old, new in mutation.changes:
        if text.count(old) != 1:
            raise ValueError(f"{mutation.name}: {mutation.file} has {old!r} {text.count(old)} times, not once")
        text = text.replace(old, new)
    return text


def run_tests(tests: str, package: Path) -> tuple[int, str]:
    """Runs tests against a copy of the package; returns pytest's exit code and the first test that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "-p", "no:randomly", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, "--timeout", "120", *shlex.split(tests)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = _FAILED.search(done.stdout)
    return done.returncode, failed[1] if failed else done.stdout[-300:]


def try_mutation(mutation: Mutation, package: Path) -> str | None:
    """Returns the test that noticed the mutation; None if none did."""
    target = package / "holdfast" / mutation.file
    target.write_text(mutated_text(mutation), encoding="utf-8")
    try:
        for tests in mutation.tests:
            code, failed = run_tests(tests, package)
            if code == TESTS_FAILED:
                return failed
            if code:
                raise RuntimeError(f"{mutation.name}: {tests} cannot be run: {failed}")
        return None
    finally:
        shutil.copy2(PACKAGE / mutation.file, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutations whose name has this text")
    given = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if given.only in mutation.name]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder)
        shutil.copytree(PACKAGE, package / "holdfast")
        for mutation in chosen:
            started = time.monotonic()
            noticed = try_mutation(mutation, package)
            survived += noticed is None
            print(f"{mutation.name} → {noticed or 'SURVIVED'} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{len(chosen)} mutations, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
