"""Neutral messages, and codecs to and from every provider's wire format."""

from .arrange import arrange
from .detection import COMMON, FORMATS, detect
from .formats import decode_all, decode_one, encode_all, format_name, join_results, must_be_messages
from .frame import CONTINUE, OPENING, frame, framed, is_aside, is_filler, is_framed, unframed
from .jsontext import from_json, length_compacted, to_json
from .media import lift_media, lower_media
from .numbering import NAMELESS, Numbering, unnumbered
from .parts import (
    Json,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from .payload import copy_json, whole_characters
from .places import continues, follows_user, is_summary, item_id, needs_reasoning, opens
from .profiles import PROFILES, Profile, presentable, profile_for, says_nothing
from .standins import media_in_words
from .tool_definitions import Tool, tools_in

__all__ = [
    "COMMON",
    "CONTINUE",
    "FORMATS",
    "NAMELESS",
    "OPENING",
    "PROFILES",
    "Json",
    "Media",
    "Message",
    "Numbering",
    "Opaque",
    "Part",
    "Profile",
    "Reasoning",
    "Role",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "arrange",
    "assistant",
    "continues",
    "copy_json",
    "decode_all",
    "decode_one",
    "detect",
    "encode_all",
    "follows_user",
    "format_name",
    "frame",
    "framed",
    "from_json",
    "is_aside",
    "is_filler",
    "is_framed",
    "is_summary",
    "item_id",
    "join_results",
    "length_compacted",
    "lift_media",
    "lower_media",
    "media_in_words",
    "must_be_messages",
    "needs_reasoning",
    "opens",
    "presentable",
    "profile_for",
    "says_nothing",
    "to_json",
    "tools_in",
    "unframed",
    "unnumbered",
    "user",
    "whole_characters",
]
