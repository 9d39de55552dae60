"""The ledger: extractive notes on archived history, made without a model and merged round after round."""

from .carry import is_ledger_page, merge_ledgers, trim_ledger
from .entries import FileRecord, Ledger
from .extract import HistoryExtractor
from .facts import Fact, FactKind, missing_facts, required_facts, stated_facts, steps_since
from .files import base_name, list_by_folder
from .headings import COUNTED, PAGE_OPENING, ROUND
from .lines import find_constraints, find_task
from .names import find_names, find_words, name_kind
from .page import LedgerPage, PageRenderer
from .parse import is_section_heading, parse_page, shorten_page
from .scoring import score_names
from .sections import PartKey, SectionRenderer, part_key
from .text import BRIEF_CHARS, READABLE_CHARS, clip, head_and_tail, quote_structure, take_fitting
from .tool_calls import failed_exit_line, find_user_replies, outcome_lines

__all__ = [
    "BRIEF_CHARS",
    "COUNTED",
    "PAGE_OPENING",
    "READABLE_CHARS",
    "ROUND",
    "Fact",
    "FactKind",
    "FileRecord",
    "HistoryExtractor",
    "Ledger",
    "LedgerPage",
    "PageRenderer",
    "PartKey",
    "SectionRenderer",
    "base_name",
    "clip",
    "failed_exit_line",
    "find_constraints",
    "find_names",
    "find_task",
    "find_user_replies",
    "find_words",
    "head_and_tail",
    "is_ledger_page",
    "is_section_heading",
    "list_by_folder",
    "merge_ledgers",
    "missing_facts",
    "name_kind",
    "outcome_lines",
    "parse_page",
    "part_key",
    "quote_structure",
    "required_facts",
    "score_names",
    "shorten_page",
    "stated_facts",
    "steps_since",
    "take_fitting",
    "trim_ledger",
]
