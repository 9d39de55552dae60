"""Other tools' session files, read into wire-format messages."""

from __future__ import annotations

from .files import read_transcript
from .transcript import Entry, PastCompaction, Transcript, Usage

__all__ = ["Entry", "PastCompaction", "Transcript", "Usage", "read_transcript"]
