"""Installs published clients into a folder outside the project, once; what cannot be installed is a message."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("HOLDFAST_CLIENTS") or Path.home() / ".cache" / "holdfast-clients")
NODE = "node@22"
"""Newest Node that all clients run on; used where the machine's own is older."""
PYTHON_PACKAGES = ("openai", "anthropic", "openai-agents", "langchain", "langchain-openai", "langchain-anthropic")
_SECONDS = 900


class NotInstalled(Exception):
    """A client that cannot be installed on this machine."""


def npm_program(package: str, program: str) -> tuple[Path, str]:
    """Returns the program of an npm package and its version; installs the package if it is missing."""
    folder = FOLDER / "npm" / package.strip("@").replace("/", "-")
    path = folder / "node_modules" / ".bin" / program
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        _run(["npm", "install", "--no-audit", "--no-fund", "--foreground-scripts", package], folder)
    if not path.exists():
        raise NotInstalled(f"{package} has no program {program}")
    name = package.partition("@")[0] if not package.startswith("@") else "@" + package[1:].partition("@")[0]
    manifest = json.loads((folder / "node_modules" / name / "package.json").read_text())
    return path, str(manifest["version"])


def node_folder() -> Path:
    """Returns the folder of a Node that is new enough for all clients."""
    if (own := shutil.which("node")) is not None:
        version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.lstrip("v").partition(".")[0]) >= 22:
            return Path(own).parent
    return npm_program(NODE, "node")[0].parent


def client_python() -> Path:
    """Returns the Python of an environment that has the SDKs and frameworks."""
    folder = FOLDER / "python"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], FOLDER)
        _run([str(python), "-m", "pip", "install", "--quiet", *PYTHON_PACKAGES], FOLDER)
        (folder / "complete").touch()
    return python


def python_program(package: str, program: str, python: str = sys.executable) -> tuple[Path, str]:
    """Returns the program of a Python package, in an environment of its own, and its version; installs it."""
    name = re.split(r"[=\[]", package)[0]
    folder = FOLDER / "tools" / name
    if not (folder / "complete").exists():
        if shutil.which(python) is None:
            raise NotInstalled(f"{package} needs {python}")
        _run([python, "-m", "venv", "--clear", str(folder)], FOLDER)
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", package], FOLDER)
        (folder / "complete").touch()
    if not (folder / "bin" / program).exists():
        raise NotInstalled(f"{package} has no program {program}")
    return folder / "bin" / program, python_version(name, folder / "bin" / "python")


def python_version(package: str, python: Path | None = None) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    command = [python or client_python(), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _run(command: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(f"{command[0]}: {problem}") from None
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if "error" in line.lower()]
        raise NotInstalled(f"{Path(command[0]).name} failed: {' '.join(lines[:2])[:200] or 'no message'}")
