"""Checks import directions: a part imports only parts above it in this list, so there are no cycles.

Imports under TYPE_CHECKING are exempt. The faces do not import each other; the command line, on top, starts them all.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "holdfast"
PARTS = [
    "errors",
    "io",
    "messages",
    "follow",
    "tokens",
    "context",
    "models",
    "types",
    "triggers",
    "ledger",
    "summaries",
    "strategies",
    "compaction",
    "hooks",
    "stores",
    "sessions",
    "recall",
    "jobs",
    "agent",
    "transcripts",
    "settings",
    "lab",
    "chat",
]
FACES = ["gateway", "integrations", "web"]
TOP = "cli"


def main() -> int:
    wrong: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        if part not in [*PARTS, *FACES, TOP]:
            wrong.append(f"{path.relative_to(PACKAGE)}: add {part!r} to the list of parts")
            continue
        for line, used in imports_of(path):
            if used != part and not allowed(part, used):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line}: {part} must not import {used}")
    print("\n".join(wrong) if wrong else f"{len(PARTS) + len(FACES) + 1} parts, every import goes the right way")
    return 1 if wrong else 0


def allowed(part: str, used: str) -> bool:
    if part == TOP:
        return True
    if part in FACES:
        return used in PARTS
    return used in PARTS and PARTS.index(used) < PARTS.index(part)


def imports_of(path: Path) -> list[tuple[int, str]]:
    """Parts of Holdfast that a file imports, anywhere in it, except under TYPE_CHECKING."""
    tree = ast.parse(path.read_text())
    free = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    home = ["holdfast", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(tree):
        if node in free:
            continue
        if isinstance(node, ast.ImportFrom):
            names = [".".join(filter(None, [*home[: len(home) - node.level + 1], node.module]))]
            if node.level == 0:
                names = [node.module or ""]
            if names[0] == "holdfast":
                names = [f"holdfast.{alias.name}" for alias in node.names if alias.name != "__version__"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found += [(node.lineno, name.split(".")[1]) for name in names if name.startswith("holdfast.")]
    return found


if __name__ == "__main__":
    sys.exit(main())
