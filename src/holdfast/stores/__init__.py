"""Places where sessions live: memory, JSONL files, SQLite. One contract, one conformance suite."""

from .jsonl import JSONLStore
from .log import Appended, Hit, Log, Search, Slice, Unchanged, Where
from .memory import MemoryStore
from .opening import open_store
from .sqlite import SQLiteStore

__all__ = [
    "Appended",
    "Hit",
    "JSONLStore",
    "Log",
    "MemoryStore",
    "SQLiteStore",
    "Search",
    "Slice",
    "Unchanged",
    "Where",
    "open_store",
]
