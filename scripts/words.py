"""Words that must not occur: in names, docstrings and comments everywhere, in texts of the package, and in the docs.

They belong to a private language that a reader who searches for the usual terms of the field cannot find.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ["src", "tests", "scripts", "benchmarks", "examples"]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs"]
NAMES = frozenset(
    "told said whoever whomever minded nought standing hearing deed deeds sieve mended mending nudge portrait "
    "trouble patience weigh settle asking telling underway beside".split()
)
"""Words of which no name may be made."""
PHRASES = re.compile(
    r"\b(whoever|whomever|nought|minded|sieve|deeds?|is told|are told|is said|what is said|goes on with|at hand|"
    r"by whomever|let OUT be|word of it|a say before)\b",
    re.IGNORECASE,
)
"""Phrases that no docstring, comment, page or text of the package may hold."""
_SUSPECT = re.compile(f"{'|'.join(sorted(NAMES))}|{PHRASES.pattern}", re.IGNORECASE)
"""Without any of these, a file need not be read token by token, which takes most of the time."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SELF = Path(__file__).resolve()


def main() -> int:
    found = [*_in_code(), *_in_pages()]
    print("\n".join(found) if found else "no word of the list occurs")
    return 1 if found else 0


def _in_code() -> Iterator[str]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path != _SELF:
                yield from _in_file(path, texts=folder == "src")


def _in_file(path: Path, *, texts: bool) -> Iterator[str]:
    source, place = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
    if not _SUSPECT.search(source):
        return
    prose = _docstring_lines(source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        where = f"{place}:{token.start[0]}"
        if token.type == tokenize.NAME:
            for word in _PARTS.findall(token.string):
                if word.lower() in NAMES:
                    yield f"{where}: the name {token.string!r} is made of {word!r}"
        elif token.type == tokenize.COMMENT or (token.type == tokenize.STRING and (texts or token.start[0] in prose)):
            yield from (f"{where}: {match.group()!r}" for match in PHRASES.finditer(token.string))


def _docstring_lines(source: str) -> set[int]:
    """Lines on which a string stands alone as a statement: docstrings, of attributes too."""
    return {
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def _in_pages() -> Iterator[str]:
    for name in PAGES:
        place = ROOT / name
        for path in sorted(place.rglob("*.md")) if place.is_dir() else [place]:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield from (f"{path.relative_to(ROOT)}:{number}: {match.group()!r}" for match in PHRASES.finditer(line))


if __name__ == "__main__":
    sys.exit(main())
