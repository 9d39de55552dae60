"""The tool of the framework examples: it reads one file of a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
QUESTION = sys.argv[2] if len(sys.argv) > 2 else "What is this folder about?"
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
WINDOW = int(os.environ.get("WINDOW", "200000"))


def read_file(path: str) -> str:
    """Reads a file of the folder; "." lists them."""
    wanted = (FOLDER / path).resolve()
    if not wanted.is_relative_to(FOLDER):
        return "There is no such file."
    return "\n".join(sorted(os.listdir(wanted))) if wanted.is_dir() else wanted.read_text()
