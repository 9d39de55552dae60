"""What to show of a part in a format that has no place for it: the model should know what was there."""

from __future__ import annotations

from .media import MARK
from .parts import Json, Media, Opaque, Part, Text, ToolResult
from .payload import as_dict, as_list

_SAID = {"compaction": "content", "search_result": "content", "document": "source", "audio": "transcript"}
"""Where the parts that only one format has keep text that all can read."""


def stand_in(part: Part) -> str:
    """A few words in place of media, the text inside an opaque part; nothing where there is none."""
    if isinstance(part, Media):
        return f"[{media_in_words(part)}]"
    return readable(part) if isinstance(part, Opaque) else ""


def media_in_words(part: Media) -> str:
    """What is there of an image, sound or file: a name, a place, or at least its type."""
    place = None if part.url is None or part.url.startswith(("data:", MARK)) else part.url
    what = part.name or place or part.file_id or part.mime
    return f"{part.kind}: {what}" if what else part.kind


def readable(part: Opaque) -> str:
    """The text of a document, a search result, a summary or a recording; else nothing."""
    return _text(part.data.get(_SAID.get(part.kind, "")))


def _text(value: object) -> str:
    if isinstance(value, dict):  # a document's source: of text, or of blocks
        value = value.get("data") if value.get("type") == "text" else value.get("content")
    if isinstance(value, list):
        value = "\n".join(str(as_dict(block).get("text") or "") for block in as_list(value))
    return value if isinstance(value, str) else ""


def result_texts(result: ToolResult) -> list[str]:
    """The texts of a result; where it has none, what stands in for the rest."""
    texts = [part.text for part in result.content if isinstance(part, Text)]
    return texts or [said for part in result.content if (said := stand_in(part))]


def text_block(kind: str, text: str) -> Json:
    return {"type": kind, "text": text}
