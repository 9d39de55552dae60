"""Finds and removes one text in all forms in which it may be written: plain, escaped in JSON, in a URL, in base64."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Iterable
from typing import Protocol

REDACTED = "[redacted]"
_MARKS = (REDACTED, "(redacted)", "*redacted*", "█")
_ID_MARKS = ("redacted", "removed", "hidden", "x")
_NAMED_ESCAPES = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_MAX_PATTERN = 500
"""Characters of a text up to which each may be escaped in its own way; a longer one is written in one way."""
_MIN_QUOTE = 12
"""Shorter texts are too common to be anybody's."""
_MIN_BASE64 = 12
"""Shorter runs occur in other base64 by chance."""
_BASE64_CHARACTERS = string.ascii_letters + string.digits + "+/-_"
_BASE64_RUN = re.compile(r"[\w+/-]*=*")


class TextFinder(Protocol):
    """Tells whether a text, which may be JSON, has what is searched for."""

    def finds(self, text: str) -> bool: ...


class QuoteFinder:
    """Finds whole texts that are long enough to be nobody else's, also in JSON, and in JSON that stands in JSON."""

    def __init__(self, texts: Iterable[str]) -> None:
        once = {form for text in texts if len(text) >= _MIN_QUOTE for form in _json_forms(text)}
        self._forms = once.union(*map(_json_forms, once))

    def finds(self, text: str) -> bool:
        return any(form in text for form in self._forms)


def _json_forms(text: str) -> tuple[str, str]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


class TextScrubber:
    """Replaces one text wherever it occurs."""

    def __init__(self, secret: str) -> None:
        self.text = secret
        self._encoded = _base64_forms(secret)
        escaped = _json_forms(secret)
        forms = sorted({secret, *escaped}.union(*map(_json_forms, escaped)), key=len, reverse=True)
        written = [re.escape(form) for form in forms]
        if len(secret) <= _MAX_PATTERN:
            written = ["".join(map(_written_character, secret))]
        self._pattern = re.compile("|".join(written))
        self._mark = _mark_without(secret, _MARKS)
        self._id_mark = _mark_without(secret, _ID_MARKS)

    def __call__(self, text: str) -> str:
        return self._replace(text, self._mark)

    def identifier(self, text: str) -> str:
        """Returns an id or a name without the text, still valid as one: the same for the same."""
        return self._replace(text, self._id_mark)

    def finds(self, text: str) -> bool:
        return bool(self._pattern.search(text)) or any(run in text for run in self._encoded)

    def _replace(self, text: str, mark: str) -> str:
        text = self._pattern.sub(mark, text)
        for run in self._encoded:
            while (at := text.find(run)) >= 0:
                start = len(text[:at].rstrip(_BASE64_CHARACTERS))
                end = _BASE64_RUN.match(text, at)
                assert end is not None
                text = text[:start] + mark + text[end.end() :]
        return text


def _mark_without(secret: str, marks: tuple[str, ...]) -> str:
    """Returns the first mark with which the text cannot arise again, inside of it or at its ends."""
    fits = (mark for mark in marks if secret not in mark and mark[0] not in secret and mark[-1] not in secret)
    return next(fits, marks[-1])


def _written_character(character: str) -> str:
    """Returns a pattern of all ways to write a character; JSON that stands in JSON has several backslashes."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escape = "".join(rf"\\+u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    percent = "".join(f"%(?i:{byte:02x})" for byte in character.encode("utf-8", "surrogatepass"))
    ways = [escape, percent]
    if character in '"/':
        ways.append(rf"\\*{character}")
    elif character == "\\":
        ways.append(r"\\+")
    elif character in _NAMED_ESCAPES:
        ways += [re.escape(character), rf"\\+{_NAMED_ESCAPES[character]}"]
    else:
        ways += [re.escape(character), *([r"\+"] if character == " " else [])]
    return f"(?:{'|'.join(reversed(ways))})"


def _base64_forms(secret: str) -> list[str]:
    """Returns the characters that base64 of any longer data with this text in it has, at each of three offsets."""
    raw, found = secret.encode("utf-8", "surrogatepass"), []
    for offset, first in enumerate((0, 2, 3)):
        run = base64.b64encode(bytes(offset) + raw)[first : (offset + len(raw)) * 8 // 6].decode()
        if len(run) >= _MIN_BASE64:
            found += [run, run.translate(str.maketrans("+/", "-_"))]
    return list(dict.fromkeys(found))
