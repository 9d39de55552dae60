"""Session files of other tools: read them into messages, import them into a store, export them again."""

from __future__ import annotations

from ..errors import AlreadyImported, EmptyTranscript
from .examples import example_path
from .exporting import ExportedSession, ExportFormat, export_session
from .files import read_transcript
from .importing import import_exported, import_transcript
from .transcript import LiveContext, PastCompaction, Transcript, TranscriptEntry, entry_numbers, live_context

__all__ = [
    "AlreadyImported",
    "EmptyTranscript",
    "ExportFormat",
    "ExportedSession",
    "LiveContext",
    "PastCompaction",
    "Transcript",
    "TranscriptEntry",
    "entry_numbers",
    "example_path",
    "export_session",
    "import_exported",
    "import_transcript",
    "live_context",
    "read_transcript",
]
