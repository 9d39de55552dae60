"""Bad input: exit code 2, one line with advice, nothing written."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_files import Run, conversation, write_json

from holdfast import MemoryStore
from holdfast.cli import stores

Refused = Callable[..., str]
WHOLE = json.dumps(conversation("openai-chat", 8))

FILES = {
    "empty": b"",
    "blank": b" \n\n",
    "binary": bytes(range(256)) * 8,
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(64),
    "words": b"Dear diary, today I compacted.",
    "cut-off": WHOLE[:-40].encode(),
    "cut-off-gz": b"\x1f\x8b\x08\x00broken",
    "no-messages": b"[]",
    "a-number": b"42",
    "numbers": b"[1, 2, 3]",
    "another-object": b'{"name": "holdfast"}',
    "roles-missing": b'{"messages": [{"text": "hi"}]}',
    "wrong-role": b'[{"role": "wizard", "content": "hi"}]',
    "two-formats": b'[{"role": "tool", "tool_call_id": "x"}, {"role": "user", "parts": [{"text": "b"}]}]',
    "bad-line": b'{"role": "user", "content": "a"}\n{"role": "us\n{"role": "user", "content": "b"}\n',
    "deep": b'[{"role":"user","content":' + b"[" * 5_000 + b"]" * 5_000 + b"}]",
    "not-utf8": b'[{"role": "user", "content": "\xff\xfe"}]',
    "empty.db": b"",
    "damaged.db": b"SQLite format 3\0" + b"damage" * 1_000,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["compact", "inspect"])
def test_file_without_messages_is_refused(command: str, name: str, refused: Refused, tmp_path: Path) -> None:
    if name == "deep":
        gc.collect()  # finalizers of earlier tests would fail at the recursion limit
    (tmp_path / name).write_bytes(FILES[name])
    options = ("-o", tmp_path / "out.json") if command == "compact" else ()
    assert str(tmp_path / name) in refused(command, tmp_path / name, *options)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == FILES[name]


@pytest.mark.parametrize("command", ["compact", "inspect", "verify"])
def test_missing_file_is_refused(command: str, refused: Refused, tmp_path: Path) -> None:
    for name in ("missing.json", "no/such/folder.json", "missing.db", "a\nb", "a" * 5_000):
        refused(command, tmp_path / name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "session.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    assert "a folder without Holdfast sessions" in refused(command, tmp_path / "folder")
    assert "no store at" in refused(command, "jsonl:nowhere")
    assert "no store at" in refused(command, "sqlite:///nowhere.db")
    assert os.listdir(tmp_path / "folder") == ["session.jsonl"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "0"], "--budget takes a whole number of at least 1"),
        (["--budget", "-5"], "--budget takes a whole number of at least 1"),
        (["--budget", "many"], "--budget takes a whole number of at least 1"),
        (["--target", "0"], "--target takes a whole number of at least 1"),
        (["--target", "-1k"], "--target takes a whole number of at least 1"),
        (["--budget", "10k", "--target", "20k"], "above budget"),
        (["--strategy", "slding:20"], "did you mean 'sliding'?"),
        (["--strategy", "sliding:-1"], "'sliding' takes a whole number"),
        (["--strategy", "fraction:2"], "between 0 and 1"),
        (["--format", "antropic"], "did you mean 'anthropic'?"),
        (["--format", "xml"], "Use one of openai-chat"),
        (["--format", "gemini"], "pass their real format"),
        (["--estimator", "o200k"], "did you mean 'o200k_base'?"),
        (["--estimator", "abacus"], "is not an estimator"),
        (["--session", "s-1"], "is not a Holdfast store"),
        (["--budgets", "3"], "See holdfast compact --help."),
        (["extra"], "unexpected extra argument"),
    ],
)
def test_invalid_options_are_refused(options: list[str], words: str, refused: Refused, tmp_path: Path) -> None:
    file = write_json(tmp_path / "chat.json", [{"role": "user", "content": "hi"}])
    assert words in refused("compact", file, *options, "-o", tmp_path / "out.json")
    assert os.listdir(tmp_path) == ["chat.json"]


def test_unknown_command_is_refused(refused: Refused) -> None:
    assert "did you mean 'compact'?" in refused("compcat", "x")
    assert "use one of chat, compact, presets, inspect, search, read, " in refused("frobnicate")
    assert "did you mean 'bash'?" in refused("completion", "bsh")
    assert "Missing argument 'FILE'" in refused("compact")
    assert "requires an argument" in refused("compact", "x", "--budget")


def test_unknown_example_is_refused(refused: Refused) -> None:
    assert "is not an example" in refused("compact", "example:nowhere")


def test_foreign_database_is_not_changed(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE visits (url TEXT)")
    connection.close()
    before = path.read_bytes()
    for command in ("compact", "inspect", "verify"):
        assert "not a Holdfast store" in refused(command, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["history.db"]


@pytest.mark.parametrize("name", ["agent.db", "logs"])
def test_unknown_session_is_refused(name: str, refused: Refused, make_store: Callable[..., Path]) -> None:
    store = make_store(name, sessions=2)
    for command in ("compact", "inspect", "verify"):
        assert "has the id or prefix 'nope'" in refused(command, store, "--session", "nope")
    assert "name one with --session" in refused("compact", store)


def test_session_without_messages_is_refused(refused: Refused, make_store: Callable[..., Path]) -> None:
    assert "holds no messages yet" in refused("compact", make_store("agent.db", messages=0))


def test_store_without_sessions_is_refused(run: Run, refused: Refused, make_store: Callable[..., Path]) -> None:
    store = make_store("agent.db", sessions=0)
    assert "holds no session yet" in refused("compact", store)
    assert "No sessions yet" in run("inspect", store).stdout
    assert run("verify", store).exit_code == 0


def test_renamed_session_file_is_refused(refused: Refused, make_store: Callable[..., Path]) -> None:
    store = make_store("logs")
    (store / "s-0.jsonl").rename(store / "renamed.jsonl")
    assert "under another file name" in refused("inspect", store / "renamed.jsonl")


def test_closed_store_is_refused(
    refused: Refused, make_store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self._closed = True

    store = make_store("agent.db")
    monkeypatch.setattr(stores, "open_store", lambda url: Closed())
    for command in ("compact", "inspect", "verify"):
        assert "closed" in refused(command, store)


def test_verify_needs_a_store(refused: Refused, chat: Path) -> None:
    assert "`holdfast inspect` checks a file of messages" in refused("verify", chat)


@pytest.mark.parametrize(("problem", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)])
def test_interrupt_prints_nothing(
    problem: BaseException, code: int, run: Run, chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr("holdfast.cli.sources.open_source", stop)
    monkeypatch.setattr("holdfast.cli.os.dup2", lambda *_: None)
    result = run("compact", chat)
    assert result.exit_code in (code, 1) and result.output.strip() == ""
