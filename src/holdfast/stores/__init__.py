"""Places where sessions live: memory, JSONL files, SQLite, PostgreSQL. One contract, one conformance suite."""

from .jsonl import JSONLStore
from .log import Appended, Hit, Log, Search, Slice, Unchanged, Where
from .memory import MemoryStore
from .opening import open_store
from .postgres import PostgresStore
from .sqlite import SQLiteStore

__all__ = [
    "Appended",
    "Hit",
    "JSONLStore",
    "Log",
    "MemoryStore",
    "PostgresStore",
    "SQLiteStore",
    "Search",
    "Slice",
    "Unchanged",
    "Where",
    "open_store",
]
