"""Places where sessions live: memory, JSONL files, SQLite. One contract, one conformance suite."""

from .log import Appended, Hit, Log, Search, Slice, Unchanged
from .memory import MemoryStore
from .sqlite import SQLiteStore

__all__ = ["Appended", "Hit", "Log", "MemoryStore", "SQLiteStore", "Search", "Slice", "Unchanged"]
