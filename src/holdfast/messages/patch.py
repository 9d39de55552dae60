"""Edits of a raw object: a value replaced or dropped at its path; all the rest stays as it came, order included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

Path = tuple[str | int, ...]
"""Keys and indices that lead to a value, in the object as it came: edits of it do not move paths."""


class Replace(msgspec.Struct, frozen=True, array_like=True, tag="replace", gc=False):
    """Replaces the value at a path."""

    path: Path
    value: Any


class Drop(msgspec.Struct, frozen=True, array_like=True, tag="drop", gc=False):
    """Drops the value at a path; the whole message if the path is empty."""

    path: Path


Edit = Replace | Drop
"""An edit of a raw object."""
HIDDEN = Drop(())
"""Hides a message."""


def patch(raw: Any, edits: Sequence[Edit]) -> Any:
    """Returns the object with its edits; what they do not touch is shared with the original.

    An edit whose place does not exist changes nothing: a redaction may have removed it.
    """
    patched, copies = raw.copy(), set[int]()
    copies.add(id(patched))
    for edit in edits if len(edits) == 1 else _in_order(edits):
        at: Any = patched
        try:
            for key in edit.path[:-1]:
                child = at[key]
                if id(child) not in copies:
                    child = at[key] = child.copy()
                    copies.add(id(child))
                at = child
            if isinstance(edit, Replace):
                at[edit.path[-1]] = edit.value
            else:
                del at[edit.path[-1]]
        except (LookupError, TypeError, AttributeError):
            continue
    return patched


def _in_order(edits: Sequence[Edit]) -> list[Edit]:
    """Returns the edits as they must be made: drops last and from the end, so that the indices of others stay true."""
    dropped = sorted((edit for edit in edits if isinstance(edit, Drop)), key=_path, reverse=True)
    return [*(edit for edit in edits if isinstance(edit, Replace)), *dropped]


def _path(edit: Drop) -> Path:
    return edit.path


def value_at(raw: Any, path: Path) -> Any:
    """Returns the value at a path."""
    for key in path:
        raw = raw[key]
    return raw


def merge(earlier: Sequence[Edit], later: Iterable[Edit]) -> tuple[Edit, ...]:
    """Returns the edits of both: of two for one path the later, and none inside what a later one removes."""
    if not earlier:
        return tuple(later)
    merged = {edit.path: edit for edit in earlier}
    for edit in later:
        if edit.path not in merged and _removes(edit):
            length = len(edit.path)
            merged = {path: known for path, known in merged.items() if path[:length] != edit.path}
        merged[edit.path] = edit
    return tuple(merged.values())


def is_removed(path: Path, edits: Iterable[Edit]) -> bool:
    """Whether these edits drop this place, or what it lies in; a field may be emptied instead."""
    return any(path[: len(edit.path)] == edit.path and (_removes(edit) or len(path) > len(edit.path)) for edit in edits)


def _removes(edit: Edit) -> bool:
    return isinstance(edit, Drop) or not edit.value


def rebase(edits: Iterable[Edit], dropped: Sequence[Path]) -> Iterator[Edit]:
    """Yields the edits for an object from which the values at these paths were dropped; a hidden one stays hidden."""
    for edit in edits:
        path = edit.path
        if not path or not any(path[: len(gone)] == gone for gone in dropped):
            yield msgspec.structs.replace(edit, path=tuple(_moved(path, dropped)))


def _moved(path: Path, dropped: Sequence[Path]) -> Iterator[str | int]:
    for depth, key in enumerate(path):
        if isinstance(key, int):
            key -= sum(_is_before(gone, path[:depth], key) for gone in dropped)
        yield key


def _is_before(gone: Path, container: Path, index: int) -> bool:
    return len(gone) == len(container) + 1 and gone[:-1] == container and int(gone[-1]) < index
