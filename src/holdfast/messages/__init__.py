"""Neutral messages, codecs for each wire format, validation, repair and legal cut points."""

from .call_ids import GENERATED_ID_PREFIX, CallIdAssigner, without_generated_id
from .codec import decode_all, decode_one, encode_all, format_name, require_message_list
from .cuts import cut_at_or_after, cut_at_or_before, has_calls, is_legal_cut, only_reasoning, open_tool_loop_start
from .detection import COMMON, FORMATS, detect_format
from .frame import CONTINUE, OPENING, add_frame, framed_message, is_aside, is_filler, is_framed, strip_frame
from .json_text import compact_json_length, from_json, to_json
from .media import extract_media, restore_media
from .parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult, assistant, user
from .payload import copy_json, describe_media, replace_lone_surrogates
from .repair import join_results, needs_user_between, normalize_for_wire, repair, repair_pairs
from .sdk import reply_usage, unpack_reply
from .tool_definitions import Tool, encode_tools
from .validate import (
    FORMAT_RULES,
    FormatRules,
    Problem,
    can_be_first,
    can_follow_reasoning,
    can_precede_system,
    check,
    drop_rejected_parts,
    find_problems,
    has_no_content,
    is_vendor_summary,
    item_id,
    rules_for,
)

__all__ = [
    "COMMON",
    "CONTINUE",
    "FORMATS",
    "FORMAT_RULES",
    "GENERATED_ID_PREFIX",
    "OPENING",
    "CallIdAssigner",
    "FormatRules",
    "Json",
    "Media",
    "Message",
    "Opaque",
    "Part",
    "Problem",
    "Reasoning",
    "Role",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "add_frame",
    "assistant",
    "can_be_first",
    "can_follow_reasoning",
    "can_precede_system",
    "check",
    "compact_json_length",
    "copy_json",
    "cut_at_or_after",
    "cut_at_or_before",
    "decode_all",
    "decode_one",
    "describe_media",
    "detect_format",
    "drop_rejected_parts",
    "encode_all",
    "encode_tools",
    "extract_media",
    "find_problems",
    "format_name",
    "framed_message",
    "from_json",
    "has_calls",
    "has_no_content",
    "is_aside",
    "is_filler",
    "is_framed",
    "is_legal_cut",
    "is_vendor_summary",
    "item_id",
    "join_results",
    "needs_user_between",
    "normalize_for_wire",
    "only_reasoning",
    "open_tool_loop_start",
    "repair",
    "repair_pairs",
    "replace_lone_surrogates",
    "reply_usage",
    "require_message_list",
    "restore_media",
    "rules_for",
    "strip_frame",
    "to_json",
    "unpack_reply",
    "user",
    "without_generated_id",
]
