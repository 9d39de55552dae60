"""Checks import directions, and that each question is answered in one place.

A part imports only parts above it in this list, so there are no cycles. Imports under TYPE_CHECKING are exempt. The
faces do not import each other; the command line, on top, starts them all. `QUESTIONS` lists the questions, with the
places that may answer them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

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
    "trust",
    "agent",
    "transcripts",
    "settings",
    "lab",
    "chat",
]
FACES = ["gateway", "integrations", "web"]
TOP = "cli"


def main() -> int:
    wrong = [*wrong_imports(), *other_answers()]
    right = f"{len(PARTS) + len(FACES) + 1} parts, every import goes the right way; {len(QUESTIONS)} questions"
    print("\n".join(wrong) if wrong else f"{right}, each answered in one place")
    return 1 if wrong else 0


def wrong_imports() -> Iterator[str]:
    """Yields the imports that go the wrong way, and the files of parts that the list does not have."""
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        if part not in [*PARTS, *FACES, TOP]:
            yield f"{path.relative_to(PACKAGE)}: add {part!r} to the list of parts"
            continue
        for line, used in imports_of(path):
            if used != part and not allowed(part, used):
                yield f"{path.relative_to(PACKAGE)}:{line}: {part} must not import {used}"


LIMIT_WORDS = frozenset(("budget", "window", "limit", "threshold"))
"""Names of what a policy resolves end in one of these."""
ID_WORDS = frozenset(("ids", "digests"))
"""Names of lists of chained ids end in one of these."""
_LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.comprehension,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


class Question(NamedTuple):
    """A question that has one answer, the places that may give it, and how to find an answer in a file."""

    name: str
    places: tuple[str, ...]
    """Files, or folders with a slash at the end."""
    find: Callable[[ast.AST], Iterator[ast.AST]]


def halved_limits(tree: ast.AST) -> Iterator[ast.AST]:
    """Finds `budget // 2`, and the same of a window, a limit or a threshold."""
    for node in ast.walk(tree):
        if is_half(node) and last_word(node.left) in LIMIT_WORDS:
            yield node


def is_half(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """Whether this is something divided by two, as a whole number."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and ast.unparse(node.right) == "2"


def computed_sizes(tree: ast.AST) -> Iterator[ast.AST]:
    """Finds calls that turn units into the tokens of a context."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr.lstrip("_") == "tokens_of" or (
                called.attr == "tokens" and last_word(called.value) == "calibration"
            ):
                yield node


def compared_lists(tree: ast.AST) -> Iterator[ast.AST]:
    """Finds loops that look for chained ids, or for the place where two lists part."""
    seen: set[ast.AST] = set()
    for loop in ast.walk(tree):
        if not isinstance(loop, _LOOPS):
            continue
        bisects = isinstance(loop, ast.While) and any(map(is_half, ast.walk(loop)))
        for node in ast.walk(loop):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq) and node not in seen:
                items = [side for side in (node.left, node.comparators[0]) if isinstance(side, ast.Subscript)]
                if (bisects and len(items) == 2) or any(last_word(item.value) in ID_WORDS for item in items):
                    seen.add(node)
                    yield node


def last_word(node: ast.AST) -> str:
    """Returns the last word of a name or attribute; empty for other expressions."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return re.split("_", name)[-1].lower()


QUESTIONS = (
    Question("when and how far to compact", ("compaction/policy.py",), halved_limits),
    Question("the size of a context", ("compaction/size.py", "context/view.py"), computed_sizes),
    Question("what of a list is known", ("follow/",), compared_lists),
)


def other_answers() -> Iterator[str]:
    """Yields the places outside its own where a question is answered."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from answers_in(path.relative_to(PACKAGE).as_posix(), path.read_text())


def answers_in(name: str, source: str) -> Iterator[str]:
    """Yields the places of a file where it answers a question that is not its own."""
    tree = ast.parse(source)
    for question in QUESTIONS:
        if not any(name == place or (place.endswith("/") and name.startswith(place)) for place in question.places):
            for node in question.find(tree):
                shown = f"{ast.unparse(node)} answers {question.name}: ask {' or '.join(question.places)}"
                yield f"{name}:{getattr(node, 'lineno', 0)}: {shown}"


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
