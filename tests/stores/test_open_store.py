"""`open_store`: addresses and the stores they open."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.stores import JSONLStore, MemoryStore, PostgresStore, SQLiteStore, open_store


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("memory:", MemoryStore),
        ("sqlite:///x.db", SQLiteStore),
        ("sqlite:////tmp/x.db", SQLiteStore),
        ("sqlite:///:memory:", SQLiteStore),
        ("agent.db", SQLiteStore),
        ("data/agent.sqlite", SQLiteStore),
        (Path("agent.sqlite3"), SQLiteStore),
        ("jsonl:sessions", JSONLStore),
        ("jsonl:/tmp/sessions", JSONLStore),
        ("sessions", JSONLStore),
        ("/tmp", JSONLStore),
        ("C:\\agent.db", SQLiteStore),
        ("postgresql://ann:secret@db.example.org:5432/agents", PostgresStore),
        ("postgres:///agents", PostgresStore),
    ],
)
def test_open_store_address_selects_kind(where: str, kind: type) -> None:
    assert type(open_store(where)) is kind


@pytest.mark.parametrize(
    "where", ["mysql://ann:hunter22@h/d", "redis:", "", "jsonl:", "sqlite:///", "sqlite:x", "notes.txt", "memory:x"]
)
def test_open_store_unknown_address_raises(where: str) -> None:
    with pytest.raises(InvalidInput, match="There is no store at") as caught:
        open_store(where)
    assert "hunter22" not in str(caught.value)


def test_sqlite_store_invalid_synchronous_raises() -> None:
    with pytest.raises(InvalidLimit, match="FULL or NORMAL"):
        SQLiteStore("x.db", synchronous="OFF")  # type: ignore[arg-type]
