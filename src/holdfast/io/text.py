"""Text made safe to send and to print: no lone surrogates, no control sequences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

MAX_LINE = 200
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_UNPRINTABLE = dict.fromkeys((*range(32), *range(127, 160)), " ")


def printable(text: str) -> str:
    """Returns the text without colours, control characters and bidirectional marks."""
    text = _ESCAPES.sub("", text).translate(_UNPRINTABLE)
    return text if text.isascii() else "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cs"))


def first_line(text: str) -> str:
    """Returns the first non-blank line, printable and truncated."""
    start = text.lstrip()
    return " ".join(printable(start.partition("\n")[0][: 2 * MAX_LINE])[:MAX_LINE].split())


_ESCAPE_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # a title, a link, the clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # strings for the terminal itself
    r"|[\x1b]\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"  # colours, the cursor, the screen
    r"|\x1b[ -/]*[0-~]"
)
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Zero-width formatting characters (direction, joining, variants); terminals disagree about their width."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_COMBINING_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACKED_MARKS = re.compile(f"({_COMBINING_MARKS}{{2}})({_COMBINING_MARKS}+)")
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_HIDDEN = re.compile(
    f"(?:{_INVISIBLE.pattern}|{_CONTROLS.pattern}|[\u2028\u2029])+|(?<={_COMBINING_MARKS}{_COMBINING_MARKS}){_COMBINING_MARKS}+"
)
"""All that a terminal does not show as a character of its own."""
_HIDDEN_IN_JSON = re.compile(f"{_INVISIBLE.pattern}|[\x7f-\x9f\u2028\u2029]")
TAB_SIZE = 4


def sanitize(text: str, *, tabs: bool = False) -> str:
    """Makes text safe to display: drops escape sequences and invisible characters, shows controls in caret notation.

    Tabs become spaces unless they are kept, for a text whose columns are not known yet.
    """
    text = _LINE_ENDS.sub("\n", _ESCAPE_SEQUENCES.sub("", text) if "\x1b" in text or "\x9b" in text else text)
    if not text.isascii():
        text = _STACKED_MARKS.sub(r"\1", _INVISIBLE.sub("", text))
    return _CONTROLS.sub(_caret_notation, text if tabs else text.expandtabs(TAB_SIZE))


def escape_controls(text: str) -> str:
    """Shows every control and invisible character and drops none: for text the user is asked to approve."""
    return "".join(piece for piece, _ in split_escapes(text))


def escape_json(data: bytes) -> bytes:
    """Escapes the control and invisible characters of encoded JSON, which means the same without them."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return _HIDDEN_IN_JSON.sub(_escape_in_json, data.decode()).encode()


def _escape_in_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def split_escapes(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the text of `escape_controls` in pieces, each with whether it is an escape: a text may look like one."""
    text, start = text.expandtabs(TAB_SIZE), 0
    for found in _HIDDEN.finditer(text):
        if found.start() > start:
            yield text[start : found.start()], False
        yield "".join(map(_escape, found[0])), True
        start = found.end()
    if start < len(text):
        yield text[start:], False


def sanitize_input(text: str) -> str:
    """Makes control characters of typed or pasted text visible; keeps tabs."""
    return _CONTROLS.sub(_caret_notation, _LINE_ENDS.sub("\n", text))


def sanitize_line(text: str) -> str:
    """Sanitizes text and joins it into one line."""
    return " ".join(sanitize(text).split())


def _caret_notation(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else "\ufffd"


def _escape(letter: str) -> str:
    code = ord(letter)
    if code < 0x80:
        return f"^{chr(code ^ 0x40)}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, decoded with surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def replace_surrogates(text: str) -> str:
    """Returns the text with a replacement character for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
