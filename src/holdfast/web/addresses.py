"""Session ids as one path segment: any id, with slashes and dots too."""

from __future__ import annotations

import base64
import binascii
import re

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def encode_id(session_id: str) -> str:
    """Returns the segment for an id: the id itself if it is plain, else `~` and its base64."""
    if _PLAIN.fullmatch(session_id):
        return session_id
    return "~" + base64.urlsafe_b64encode(session_id.encode(errors="surrogatepass")).decode().rstrip("=")


def decode_id(segment: str) -> str:
    """Returns the id of a segment; one that no id has is returned as it is."""
    if not segment.startswith("~"):
        return segment
    try:
        coded = segment[1:]
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode(errors="surrogatepass")
    except (binascii.Error, ValueError):
        return segment


def session_path(session_id: str, *rest: str | int) -> str:
    return "/".join(["/s", encode_id(session_id), *map(str, rest)])
