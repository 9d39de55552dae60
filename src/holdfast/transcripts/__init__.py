"""Other tools' session files: read into wire-format messages, written into a store, and written out again."""

from __future__ import annotations

from .exporting import Exported, ExportFormat, export_session
from .files import NothingSaid, read_transcript
from .importing import AlreadyThere, import_exported, import_transcript
from .shown import InView, in_view, numbers_of
from .transcript import Entry, PastCompaction, Transcript, Usage

__all__ = [
    "AlreadyThere",
    "Entry",
    "ExportFormat",
    "Exported",
    "InView",
    "NothingSaid",
    "PastCompaction",
    "Transcript",
    "Usage",
    "export_session",
    "import_exported",
    "import_transcript",
    "in_view",
    "numbers_of",
    "read_transcript",
]
