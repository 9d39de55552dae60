"""Summaries by a model: transcripts, prompts, writers, and the validation of their answers."""

from ..io.text import replace_surrogates
from .free_text import (
    CLAUDE_CODE_TASK,
    CODEX_TASK,
    GOAT_TASK,
    OPENCODE_TASK,
    PI_TASK,
    RECURSIVE_TASK,
    FreeText,
)
from .log_section import LOG_HEADING, Archived, log_section
from .prompts import SYSTEM_PROMPT, RejectedSummary, SummaryDraft, SummaryInput
from .rendering import (
    SHADOW_PROMPT,
    SUMMARY_PREFIX,
    AsAssistant,
    AsExchange,
    AsReply,
    AsSystem,
    AsUser,
    SummaryRenderer,
    as_assistant,
)
from .state_writer import StateText
from .structured_writer import Structured
from .summarizer import write_to_fit
from .transcript import Style, SummaryTranscript, build_transcript
from .verify import remove_hallucinated_names

__all__ = [
    "CLAUDE_CODE_TASK",
    "CODEX_TASK",
    "GOAT_TASK",
    "LOG_HEADING",
    "OPENCODE_TASK",
    "PI_TASK",
    "RECURSIVE_TASK",
    "SHADOW_PROMPT",
    "SUMMARY_PREFIX",
    "SYSTEM_PROMPT",
    "Archived",
    "AsAssistant",
    "AsExchange",
    "AsReply",
    "AsSystem",
    "AsUser",
    "FreeText",
    "RejectedSummary",
    "StateText",
    "Structured",
    "Style",
    "SummaryDraft",
    "SummaryInput",
    "SummaryRenderer",
    "SummaryTranscript",
    "as_assistant",
    "build_transcript",
    "log_section",
    "remove_hallucinated_names",
    "replace_surrogates",
    "write_to_fit",
]
