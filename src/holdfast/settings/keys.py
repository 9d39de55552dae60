"""The setting keys: type, environment variable, and whether a project's file may set them."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ..compaction.policy import find_policy
from ..errors import InvalidInput, InvalidLimit
from ..io.arguments import closest_name, parse_count
from ..io.secrets import scrub

PREFIX = "HOLDFAST_"
_LIKENESS = 0.7
"""How alike a misspelled key must be to be suggested."""
_TRUE_WORDS, _FALSE_WORDS = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


class SettingKey(Struct, frozen=True):
    """Definition of one setting."""

    name: str
    kind: Literal["text", "count", "flag", "commands"]
    description: str
    variable: str | None = None
    in_project: bool = False
    """Whether a project's file may set it: only what can run, send and redirect nothing."""

    def validate(self, value: Any, where: str) -> Any:
        """Returns the checked value. `where` is the location named in the error."""
        match self.kind, value:
            case "text", str() if value.strip():
                return _preset_name(value, where) if self.name == "preset" else value.strip()
            case "count", bool():
                pass
            case "count", int():
                if value >= 1:
                    return value
                raise InvalidLimit(f"{where}: {self.name} is {value}: it must be at least 1.")
            case "flag", bool():
                return value
            case "commands", list() | tuple() if all(isinstance(line, str) and line.strip() for line in value):
                return tuple(value)
        raise InvalidInput(f"{where}: {self.name} takes {_EXPECTED[self.kind]}, not {scrub(repr(value))}.")

    def parse(self, text: str, where: str) -> Any:
        """Parses a value from the environment or the command line."""
        text = text.strip()
        match self.kind:
            case "count":
                return parse_count(text, f"{where}: {self.name}")
            case "flag" if text.lower() in (*_TRUE_WORDS, *_FALSE_WORDS):
                return text.lower() in _TRUE_WORDS
            case "commands":
                return self.validate([text], where)
        return self.validate(text, where)


_EXPECTED = {
    "text": "a non-empty text",
    "count": "a whole number",
    "flag": "true or false",
    "commands": "a list of shell commands",
}
KEYS = {
    key.name: key
    for key in (
        SettingKey("model", "text", "model that answers", f"{PREFIX}MODEL"),
        SettingKey("summarizer", "text", "model that writes summaries, if a different one", f"{PREFIX}SUMMARIZER"),
        SettingKey("preset", "text", "compaction preset", f"{PREFIX}PRESET", True),
        SettingKey("window", "count", "tokens of the model's window, if not the catalog's", f"{PREFIX}WINDOW", True),
        SettingKey("store", "text", "where sessions are kept", f"{PREFIX}STORE"),
        SettingKey("retry_seconds", "count", "seconds to retry a failed model call", f"{PREFIX}RETRY_SECONDS"),
        SettingKey("project_instructions", "flag", "read AGENTS.md and CLAUDE.md", f"{PREFIX}PROJECT_INSTRUCTIONS"),
        SettingKey("notifications", "flag", "call the user who is away from a chat", f"{PREFIX}NOTIFICATIONS"),
        SettingKey("compaction.enabled", "flag", "compact automatically", f"{PREFIX}AUTO_COMPACT", True),
        SettingKey(
            "compaction.reserve_tokens", "count", "tokens left free for the reply", f"{PREFIX}RESERVE_TOKENS", True
        ),
        SettingKey(
            "compaction.keep_recent_tokens", "count", "newest tokens to keep", f"{PREFIX}KEEP_RECENT_TOKENS", True
        ),
        SettingKey("hooks.before", "commands", "run before a compaction"),
        SettingKey("hooks.after", "commands", "run after a compaction"),
        SettingKey("hooks.session_start", "commands", "run when the session resumes after a compaction"),
    )
}
"""All settings by name."""
SECTIONS = tuple(dict.fromkeys(name.partition(".")[0] for name in KEYS if "." in name))


def check_section(name: str, where: str) -> None:
    """Raises InvalidInput for an empty table whose name is not a section: it may be misspelled."""
    if name not in SECTIONS:
        near = closest_name(name, SECTIONS, _LIKENESS)
        hint = f"did you mean [{near}]?" if near else f"use one of {', '.join(f'[{one}]' for one in SECTIONS)}."
        raise InvalidInput(f"{where}: there is no section [{name}]: {hint}")


def find_key(name: str, where: str) -> SettingKey:
    """Returns the setting of this name. Raises InvalidInput with the closest name."""
    if name in KEYS:
        return KEYS[name]
    hint = f"did you mean {near!r}?" if (near := closest_key(name)) else f"use one of {', '.join(KEYS)}."
    raise InvalidInput(f"{where}: there is no setting {name!r}: {hint}")


def closest_key(name: str) -> str | None:
    """The most similar key; its section may be missing, and camel case as in `reserveTokens` is recognised."""
    tails = {key.rpartition(".")[2]: key for key in KEYS}
    wanted = name.lower()
    found = closest_name(wanted, KEYS, _LIKENESS) or closest_name(wanted.rpartition(".")[2], tails, _LIKENESS)
    return tails.get(found, found) if found else None


def _preset_name(value: str, where: str) -> str:
    try:
        return find_policy(value).name
    except InvalidInput as problem:
        raise InvalidInput(f"{where}: {problem}") from None
