"""One known way to break the package, with the tests that must notice it."""

from __future__ import annotations

import msgspec


class Mutation(msgspec.Struct, frozen=True):
    """Replacements in one file of the package, and the tests of which at least one must fail."""

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def mutation(name: str, file: str, old: str, new: str, *tests: str) -> Mutation:
    """Returns a mutation of one place."""
    return Mutation(name, file, ((old, new),), tests)
