"""Sessions as append-only, human-readable JSONL files in a folder."""

from .store import JSONLStore

__all__ = ["JSONLStore"]
