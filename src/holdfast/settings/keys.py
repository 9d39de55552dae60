"""Every setting by its key: what it takes, which variable sets it, and who may."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from ..errors import InvalidInput, InvalidLimit
from ..models import scrub
from ..presets import preset_named

PREFIX = "HOLDFAST_"
_ON, _OFF = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


class Key(Struct, frozen=True):
    """One setting."""

    name: str
    kind: Literal["text", "count", "flag", "commands"]
    about: str
    variable: str | None = None
    owned: bool = False
    """May only the person set it, and no project?"""

    def taken(self, value: Any, where: str) -> Any:
        """The value as settings hold it; `where` names its place in the complaint."""
        match self.kind, value:
            case "text", str() if value.strip():
                return _preset(value, where) if self.name == "preset" else value.strip()
            case "count", bool():
                pass
            case "count", int():
                if value >= 1:
                    return value
                raise InvalidLimit(f"{where}: {self.name} is {value}, and must be at least 1.")
            case "flag", bool():
                return value
            case "commands", list() | tuple() if all(isinstance(line, str) and line.strip() for line in value):
                return tuple(value)
        raise InvalidInput(f"{where}: {self.name} takes {_TAKES[self.kind]}, not {scrub(repr(value))}.")

    def read(self, text: str, where: str) -> Any:
        """The value that a text stands for, as the environment and a command line have it."""
        text = text.strip()
        match self.kind:
            case "count":
                try:
                    return self.taken(int(text), where)
                except ValueError as problem:
                    if isinstance(problem, InvalidInput):
                        raise
            case "flag" if text.lower() in (*_ON, *_OFF):
                return text.lower() in _ON
            case "commands":
                return self.taken([text], where)
        return self.taken(text, where)

    def may_stand_in_a_project(self, value: Any) -> bool:
        """A project comes from anyone: it may not run commands, name a server, or say where sessions are kept."""
        return not self.owned and not (isinstance(value, str) and "://" in value)


_TAKES = {
    "text": "a text that is not empty",
    "count": "a whole number",
    "flag": "true or false",
    "commands": "a list of shell commands",
}
KEYS = {
    key.name: key
    for key in (
        Key("model", "text", "the model that answers", f"{PREFIX}MODEL"),
        Key("summarizer", "text", "the model that writes summaries, if another", f"{PREFIX}SUMMARIZER"),
        Key("preset", "text", "how to compact", f"{PREFIX}PRESET"),
        Key("window", "count", "tokens the model takes, if not as the catalog says", f"{PREFIX}WINDOW"),
        Key("store", "text", "where sessions are kept", f"{PREFIX}STORE", owned=True),
        Key("compaction.enabled", "flag", "compact by itself", f"{PREFIX}AUTO_COMPACT"),
        Key("compaction.reserve_tokens", "count", "tokens left free for the reply", f"{PREFIX}RESERVE_TOKENS"),
        Key("compaction.keep_recent_tokens", "count", "newest tokens that stay", f"{PREFIX}KEEP_RECENT_TOKENS"),
        Key("hooks.before", "commands", "run before a compaction", owned=True),
        Key("hooks.after", "commands", "run after a compaction", owned=True),
        Key("hooks.session_start", "commands", "run when the session goes on after a compaction", owned=True),
    )
}


SECTIONS = tuple(dict.fromkeys(name.partition(".")[0] for name in KEYS if "." in name))


def must_be_a_section(name: str, where: str) -> None:
    """For a table with nothing in it: nobody would notice that it is misspelled."""
    if name not in SECTIONS:
        near = _closest(name.lower(), SECTIONS)
        hint = f"did you mean [{near}]?" if near else f"use one of {', '.join(f'[{one}]' for one in SECTIONS)}."
        raise InvalidInput(f"{where}: there is no section [{name}]: {hint}")


def key_named(name: str, where: str) -> Key:
    """The setting of this name; else the complaint says which was meant."""
    if name in KEYS:
        return KEYS[name]
    hint = f"did you mean {near!r}?" if (near := nearest(name)) else f"use one of {', '.join(KEYS)}."
    raise InvalidInput(f"{where}: there is no setting {name!r}: {hint}")


def nearest(name: str) -> str | None:
    """The key that was probably meant: its section may be missing, and other tools write `reserveTokens`."""
    tails = {key.rpartition(".")[2]: key for key in KEYS}
    wanted = name.lower()
    found = _closest(wanted, KEYS) or _closest(wanted.rpartition(".")[2], tails)
    return tails.get(found, found) if found else None


def _closest(name: str, names: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(names), 1, 0.7)), None)


def _preset(value: str, where: str) -> str:
    try:
        return preset_named(value).name
    except InvalidInput as problem:
        raise InvalidInput(f"{where}: {problem}") from None
