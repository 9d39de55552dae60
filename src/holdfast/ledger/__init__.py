"""The ledger: extractive notes on archived history, made without a model and merged round after round."""

from .carry import is_ledger_page, trim_ledger
from .entries import FileRecord, Ledger
from .extract import HistoryExtractor
from .facts import Fact, missing_facts, required_facts
from .lines import find_task
from .names import find_names, find_words, name_kind
from .parse import parse_page
from .paths import base_name, list_by_folder
from .render import LedgerPage, PageRenderer, SectionRenderer
from .scoring import score_names
from .text import PAGE_OPENING, READABLE_CHARS, clip, take_fitting

__all__ = [
    "PAGE_OPENING",
    "READABLE_CHARS",
    "Fact",
    "FileRecord",
    "HistoryExtractor",
    "Ledger",
    "LedgerPage",
    "PageRenderer",
    "SectionRenderer",
    "base_name",
    "clip",
    "find_names",
    "find_task",
    "find_words",
    "is_ledger_page",
    "list_by_folder",
    "missing_facts",
    "name_kind",
    "parse_page",
    "required_facts",
    "score_names",
    "take_fitting",
    "trim_ledger",
]
