"""Text from models and tools, made harmless for a terminal: what is shown can never steer the screen."""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link, the clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # strings for the terminal itself
    r"|[\x1b]\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"  # colours, the cursor, the screen
    r"|\x1b[ -/]*[0-~]"
)
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that only change others: direction, joining, variants. Terminals disagree about their width."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILED = re.compile(f"({_MARKS}{{2}}){_MARKS}+")
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
TAB = 4


def clean(text: str) -> str:
    """As a terminal would show it: colours and other sequences are dropped, stray control characters become visible."""
    return shown_as_is(_SEQUENCES.sub("", text) if "\x1b" in text or "\x9b" in text else text)


def shown_as_is(text: str) -> str:
    """With nothing dropped that does something: for what a person is asked to allow."""
    text = _LINE_ENDS.sub("\n", text).expandtabs(TAB)
    if not text.isascii():
        text = _PILED.sub(r"\1", _INVISIBLE.sub("", text))
    return _CONTROLS.sub(_visible, text)


def typed(text: str) -> str:
    """What a person puts in: tabs and every letter stay, and only control characters are made visible."""
    return _CONTROLS.sub(_visible, _LINE_ENDS.sub("\n", text))


def one_line(text: str) -> str:
    """The same in one line."""
    return " ".join(clean(text).split())


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else "\ufffd"
