"""`open_store`: addresses and the stores they open."""

from __future__ import annotations

import subprocess
import sys
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


FORKED = """
import asyncio, os, sys
from holdfast.context.events import SessionRecord
from holdfast.stores import Slice, open_store

store = open_store(sys.argv[1])
asyncio.run(store.create(SessionRecord("s", "t")))
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
for call in (lambda: store.append("s", []), lambda: store.read("s", Slice())):
    try:
        asyncio.run(asyncio.wait_for(call(), 20))
    except Exception as error:
        print(type(error).__name__, error, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.parametrize("name", ["log.db", "log"])
def test_store_opened_before_a_fork_says_so_in_the_child(name: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, tmp_path / name], capture_output=True, text=True, timeout=60)
    assert done.stdout.count("StoreError This store was opened before the process forked: open it again") == 2
