"""A settings file: TOML in, values by key out, and complaints that name the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import InvalidInput
from .keys import KEYS, Key, key_named, must_be_a_section

_HEADER = re.compile(r"\[\s*([^\[\]]+?)\s*\]")


class Found(Struct, frozen=True):
    """A value, and where it stands."""

    key: Key
    value: Any
    line: int


def text_of(file: Path) -> str:
    """What the file says; nothing if there is no such file."""
    try:
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not UTF-8"
        raise InvalidInput(f"The settings {file} cannot be read ({why}): check the file.") from None


def read_settings(text: str, file: Path) -> dict[str, Found]:
    """The settings of a file by key."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise InvalidInput(f"The settings {file} are not TOML: {problem}.") from None
    found = {}
    for names, value in _leaves(data, ()):
        line = _line_of(text, names)
        where, name = f"{file}, line {line}", ".".join(names)
        if value == {} and name not in KEYS:
            must_be_a_section(name, where)
            continue
        key = key_named(name, where)
        found[key.name] = Found(key, key.taken(value, where), line)
    return found


def _leaves(data: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value with its names, and every table in which there is nothing."""
    for name, value in data.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _line_of(text: str, names: Sequence[str]) -> int:
    """The line that sets a key; the one that opens its table, where it stands on no line of its own."""
    table: list[str] = []
    best = 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line.strip()):
            at = table = _parts(header[1])
        elif "=" in line:
            at = table + _parts(line.partition("=")[0])
        else:
            continue
        if at == list(names[: len(at)]):
            best = number
            if len(at) == len(names):
                break
    return best


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
