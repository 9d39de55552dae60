"""Codec helpers: lenient JSON access, data URLs, call ids, error marks, placeholders for unsupported parts."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import InvalidInput
from .json_text import to_json
from .parts import JSON_SCALARS, Json, Media, Opaque, Part, Text, ToolResult
from .patch import Drop, Edit, Path, Replace, patch
from .sdk import dump

MEDIA_PREFIX = "holdfast-media:"
"""Prefix of the digest that replaces media."""
_KEYS = frozenset(("data", "url", "image", "image_url", "file_data"))
_MIN_CHARACTERS = 1_024
_NEVER_MEDIA = JSON_SCALARS - {str}


def extract_media(payload: Json) -> tuple[Json, dict[str, str]]:
    """Returns the payload with digests in place of its media, and the media by digest."""
    places: list[tuple[Path, str]] = []
    _find(payload, "", (), _is_media, places)
    if not places:
        return payload, {}
    named = [(path, hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest(), value) for path, value in places]
    shown: Json = patch(payload, [Replace(path, MEDIA_PREFIX + digest) for path, digest, _ in named])
    return shown, {digest: value for _, digest, value in named}


def restore_media(payload: Json, media: Mapping[str, str]) -> Json:
    """Returns the payload with its media restored."""
    places: list[tuple[Path, str]] = []
    _find(payload, "", (), _is_digest, places)
    if not places:
        return payload
    known = ((path, media.get(value.removeprefix(MEDIA_PREFIX))) for path, value in places)
    restored: Json = patch(payload, [Replace(path, value) for path, value in known if value is not None])
    return restored


def _find(
    value: Any, key: str, path: Path, is_wanted: Callable[[str, str], bool], found: list[tuple[Path, str]]
) -> None:
    """Collects where texts under a media key, or in a list there, are wanted."""
    if type(value) is str:
        if key in _KEYS and is_wanted(key, value):
            found.append((path, value))
    elif isinstance(value, dict):
        for name, item in value.items():
            if type(item) not in JSON_SCALARS or name in _KEYS:
                _find(item, name, (*path, name), is_wanted, found)
    elif isinstance(value, list):
        skipped = _NEVER_MEDIA if key in _KEYS else JSON_SCALARS
        for index, item in enumerate(value):
            if type(item) not in skipped:
                _find(item, key, (*path, index), is_wanted, found)


def _is_media(key: str, value: str) -> bool:
    """Long data under a media key; also text that starts with the prefix, so that it is never mistaken for a digest."""
    if value.startswith(MEDIA_PREFIX):
        return True
    return len(value) >= _MIN_CHARACTERS and (key in ("data", "image", "file_data") or value.startswith("data:"))


def _is_digest(key: str, value: str) -> bool:
    return value.startswith(MEDIA_PREFIX)


INTERRUPTED_TEXT = "(no result: the call was interrupted)"
"""Result of a call that was never answered."""
ERROR_MARK = "[tool error] "
"""Prefix of a failed result in formats without an error flag."""
ResultParts = tuple[Text | Media | Opaque, ...]
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def as_text(value: Any) -> str:
    """Returns a string unchanged, "" for None, and compact JSON for anything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else to_json(value)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def drop_none(value: Json) -> Json:
    return {key: item for key, item in value.items() if item is not None}


def read_data_url(url: str) -> tuple[str | None, str | None]:
    """Returns the MIME type and base64 data of a data URL; (None, None) for any other URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None, None
    return head[len("data:") : -len(";base64")] or None, data


def data_url(media: Media, mime: str) -> str | None:
    """Returns media data as a data URL; `mime` is the default type."""
    return f"data:{media.mime or mime};base64,{media.data}" if media.data else None


_MIMES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/octet-stream"}


def mime_of(media: Media) -> str:
    """Returns the MIME type: as given, guessed from the file name, or the default of its kind."""
    return media.mime or mimetypes.guess_type(media.url or media.name or "")[0] or _MIMES[media.kind]


def copy_json(value: Any) -> Any:
    """Deep copy of plain JSON, much faster than copy.deepcopy; SDK objects inside become JSON."""
    try:
        return _copy(value)
    except RecursionError:
        raise InvalidInput("A message is nested too deeply to be read: check its content.") from None


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        copy = value.copy()
        for key, item in value.items():
            if type(item) is not str and type(item) not in JSON_SCALARS:
                copy[key] = _copy(item)
        return copy
    if kind is list or isinstance(value, list | tuple):
        return [item if type(item) in JSON_SCALARS else _copy(item) for item in value]
    if isinstance(value, Mapping):
        return _copy(dict(value))
    return dump(value) if hasattr(value, "model_dump") else value


def replace_lone_surrogates(value: Any) -> Any:
    """Replaces lone surrogates in plain JSON: a streamed piece may end inside an emoji."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [replace_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_lone_surrogates(key): replace_lone_surrogates(item) for key, item in value.items()}
    return value


def make_legal_id(call_id: str, longest: int, *, strict: bool = False) -> str:
    """Returns an id that a format accepts: not longer, and if strict only letters, digits, `_` and `-`.

    A digest replaces what is cut off, so that two calls never share an id.
    """
    if 0 < len(call_id) <= longest and not (strict and _ILLEGAL.search(call_id)):
        return call_id
    legal = _ILLEGAL.sub("_", call_id) if strict else call_id
    digest = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{legal[: longest - 9] or 'call'}-{digest}"


def read_error(parts: ResultParts) -> tuple[bool, ResultParts]:
    """Detects a failed result by its prefix; returns the parts without it."""
    if parts and isinstance(first := parts[0], Text) and first.text.startswith(ERROR_MARK):
        text = first.text[len(ERROR_MARK) :]
        return True, (Text(text), *parts[1:]) if text else parts[1:]
    return False, parts


def mark_error(result: ToolResult) -> ResultParts:
    """Returns the parts of a result, with the error prefix if it failed."""
    if not result.is_error:
        return result.content
    if result.content and isinstance(first := result.content[0], Text):
        return (Text(ERROR_MARK + first.text), *result.content[1:])
    return (Text(ERROR_MARK), *result.content)


def retext_content(
    content: Any, text: str, path: Path = (), *, marks: bool = False, block: Json | None = None, field: str = "text"
) -> Iterator[Edit]:
    """Yields the edits that put a text in place of a content: in its first text, without its other blocks.

    With `marks` the prefix of a failed result stays. A content that must be a list of blocks gets a new one, with the
    other fields of `block`, if it has no text.
    """
    blocks = as_list(content)
    first = next((index for index, item in enumerate(blocks) if isinstance(as_dict(item).get(field), str)), None)
    known = content if first is None else blocks[first][field]
    if marks and not first and isinstance(known, str) and known.startswith(ERROR_MARK):
        text = ERROR_MARK + text
    if first is None:
        yield Replace(path, text if block is None else [block | {field: text}])
    else:
        yield Replace((*path, first, field), text)
        yield from (Drop((*path, index)) for index in range(len(blocks)) if index != first)


_TEXT_FIELDS = {
    "compaction": "content",
    "search_result": "content",
    "document": "source",
    "file": "data",
    "audio": "transcript",
}
"""Field with readable text, by kind of opaque part."""


def placeholder_text(part: Part) -> str:
    """Returns a description of media, or the text inside an opaque part; "" if there is none."""
    if isinstance(part, Media):
        return f"[{describe_media(part)}]"
    return opaque_text(part) if isinstance(part, Opaque) else ""


def describe_media(part: Media) -> str:
    """Describes media by name, URL, file id or type."""
    place = None if part.url is None or part.url.startswith(("data:", MEDIA_PREFIX)) else part.url
    what = part.name or place or part.file_id or part.mime
    return f"{part.kind}: {what}" if what else part.kind


def opaque_text(part: Opaque) -> str:
    """Returns the text of a document, search result, summary or recording; "" for any other part."""
    return _text(part.data.get(_TEXT_FIELDS.get(part.kind, "")))


def _text(value: object) -> str:
    if isinstance(value, dict):  # a document's source: of text, or of blocks
        value = value.get("data") or value.get("text") if value.get("type") == "text" else value.get("content")
    if isinstance(value, list):
        value = "\n".join(str(as_dict(block).get("text") or "") for block in as_list(value))
    return value if isinstance(value, str) else ""


def result_texts(result: ToolResult) -> list[str]:
    """Returns the texts of a result; if it has none, placeholders for its other parts."""
    texts = [part.text for part in result.content if isinstance(part, Text)]
    return texts or [text for part in result.content if (text := placeholder_text(part))]


def text_block(kind: str, text: str) -> Json:
    return {"type": kind, "text": text}
