"""Holdfast stores on the command line: read, listed, verified, never changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, conversation, loaded

from holdfast import BlockingSessionService, check
from holdfast.stores import open_store

Store = Callable[..., Path]
Refused = Callable[..., str]
KINDS = ("agent.db", "agent.sqlite3", "logs")


def events(path: Path) -> bytes:
    """Content of a store as bytes that must not change."""
    if path.is_dir():
        return b"".join(file.read_bytes() for file in sorted(path.glob("*.jsonl")))
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT seq, id, kind, digest, body FROM events ORDER BY session, seq").fetchall()
    connection.close()
    return json.dumps(rows).encode()


@pytest.mark.parametrize("name", KINDS)
def test_store_single_session_is_default(name: str, run: Run, make_store: Store) -> None:
    store = make_store(name)
    before = events(store)
    facts = loaded(run("compact", store, "--budget", "500", "--json").stdout)
    assert (facts["outcome"], facts["model"], facts["valid"]) == ("compacted", "gpt-4o", True)
    assert facts["messages"][-1] == {"role": "user", "content": "And then?"}
    assert events(store) == before


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A store with generated ids: long, with a common prefix."""
    path = tmp_path / "agent.db"
    with BlockingSessionService(open_store(path)) as sessions:
        for end in ("ab12", "ab34", "cd56"):
            sessions.create(id=f"0198f2{'0' * 20}{end}", owner="somebody with a rather long name")
            sessions.append(f"0198f2{'0' * 20}{end}", {"role": "user", "content": f"Hello from {end}."})
    return path


def test_generated_ids_are_shortened_and_accepted(run: Run, refused: Refused, tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    with BlockingSessionService(open_store(store)) as sessions:
        ids = [f"6f9619ff-8b86-4d01-b42d-00cf4fc9{end}" for end in ("64ff", "12ff", "34aa")]
        for id in ids:
            sessions.create(id=id)
            sessions.append(id, {"role": "user", "content": "Hello."})
    listed = run("inspect", store).stdout
    assert all(id[-6:] in listed and id not in listed for id in ids)
    assert "Undid" not in refused("undo", store, "--session", "c934aa")
    assert run("fork", store, "--session", "c934aa", "--id", "copy").stdout.startswith(
        "Created session copy from c934aa"
    )
    assert run("read", "#1", store, "--session", "64ff").exit_code == 0
    error = refused("read", "#1", store, "--session", "ff")
    assert error == "holdfast: 'ff' is part of several session ids, c912ff, c964ff: use one of these.\n"


def test_session_unique_prefix_is_enough(run: Run, refused: Refused, named: Path) -> None:
    start = f"0198f2{'0' * 20}"
    for command in (("inspect",), ("compact",), ("search", "Hello"), ("read", "#1"), ("verify",)):
        done = run(*command, named, "--session", f"{start}cd", "--json")
        assert done.exit_code == 0 and "ab12" not in done.stdout, command
    assert "cd56" in run("export", f"{start}c", "--store", named).stdout
    error = refused("read", "#1", named, "--session", f"{start}ab")
    assert f"several session ids, {start}ab34, {start}ab12: use one of these." in error
    error = refused("inspect", named, "--session", "nope")
    assert "has the id or prefix 'nope'" in error and "create" not in error


def test_session_list_never_truncates_ids(run: Run, named: Path) -> None:
    listed = run("inspect", named, COLUMNS="60").stdout
    assert all(f"0198f2{'0' * 20}{end}" in listed for end in ("ab12", "ab34", "cd56"))


@pytest.mark.parametrize("name", KINDS)
def test_store_with_several_sessions_is_listed(name: str, run: Run, make_store: Store) -> None:
    store = make_store(name, sessions=3)
    rows = loaded(run("inspect", store, "--json").stdout)["sessions"]
    assert {row["id"] for row in rows} == {"s-0", "s-1", "s-2"}
    assert all(row["owner"] == "ann" and row["events"] == 82 and row["tokens"] > 100 for row in rows)
    out = run("inspect", store).stdout
    assert "3 sessions" in out and "s-1" in out and "last activity" in out


@pytest.mark.parametrize("name", KINDS)
def test_session_is_selected_by_id(name: str, run: Run, make_store: Store) -> None:
    store = make_store(name, sessions=2)
    facts = loaded(run("inspect", store, "--session", "s-1", "--json").stdout)
    assert (facts["kind"], facts["id"], facts["model"]) == ("holdfast", "s-1", "gpt-4o")
    assert facts["shares"][0]["label"] == "system prompt"
    assert facts["compactions"][0]["by"] == "ledger"
    assert facts["compactions"][0]["tokens_after"] < facts["compactions"][0]["tokens_before"]
    assert facts["logged"] == 81 > facts["messages"]
    assert "ledger" in run("inspect", store, "--session", "s-1").stdout


@pytest.mark.parametrize("name", ["agent.db", "logs"])
def test_whole_returns_full_history(name: str, run: Run, make_store: Store) -> None:
    facts = loaded(run("compact", make_store(name), "--whole", "--json").stdout)
    assert facts["messages"] == [*conversation("openai-chat", 80), {"role": "user", "content": "And then?"}]


def test_session_file_selects_itself(run: Run, make_store: Store) -> None:
    store = make_store("logs", sessions=2)
    facts = loaded(run("inspect", store / "s-1.jsonl", "--json").stdout)
    assert (facts["kind"], facts["id"]) == ("holdfast", "s-1")
    assert loaded(run("verify", store / "s-1.jsonl", "--json").stdout)["sessions"] == {"s-1": []}


def test_store_by_url(run: Run, make_store: Store) -> None:
    assert run("verify", f"sqlite:///{make_store('agent.db')}").exit_code == 0
    assert run("verify", f"jsonl:{make_store('logs')}").exit_code == 0


@pytest.mark.parametrize("words", [("inspect",), ("verify",), ("compact",), ("search", "tide"), ("read", "#3")])
@pytest.mark.parametrize("scheme", ["sqlite:///", "jsonl:"])
def test_missing_store_suggests_import_or_chat(
    words: tuple[str, ...], scheme: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    error = refused(*words, f"{scheme}{tmp_path / 'gone'}")
    assert "There is no store at" in error and "import a session or chat first, or name another." in error
    assert not (tmp_path / "gone").exists()
    (tmp_path / "gone").write_text("notes")
    assert "is not a Holdfast store: name another." in refused(*words, f"{scheme}{tmp_path / 'gone'}")


def test_store_session_is_written_as_request_body(run: Run, make_store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run("compact", make_store("agent.db"), "--budget", "500", "-o", out)
    body = loaded(out)
    assert list(body) == ["model", "system", "messages"]
    assert (body["model"], body["system"]) == ("gpt-4o", "Be brief.")
    assert check(body["messages"], "openai-chat") == []


@pytest.mark.parametrize("name", KINDS)
def test_verify_consistent_store(name: str, run: Run, make_store: Store) -> None:
    store = make_store(name, sessions=2)
    result = run("verify", store)
    assert (result.exit_code, result.stdout) == (0, f"2 sessions of {store}: all consistent.\n")
    facts = loaded(run("verify", store, "--json").stdout)
    assert facts == {"store": str(store), "ok": True, "sessions": {"s-0": [], "s-1": []}}
    assert loaded(run("verify", store, "--session", "s-0", "--json").stdout)["sessions"] == {"s-0": []}


def test_verify_finds_changed_row(run: Run, make_store: Store) -> None:
    store = make_store("agent.db", sessions=2)
    with sqlite3.connect(store) as connection:
        connection.execute(
            "UPDATE events SET body = replace(body, 'berth 3', 'berth 9') "
            "WHERE seq = 13 AND session = (SELECT key FROM sessions WHERE id = 's-1')"
        )
    connection.close()
    result = run("verify", store)
    assert result.exit_code == 1
    assert "s-1: " in result.stdout and "s-0: " not in result.stdout
    assert "1 of 2 sessions" in result.stdout
    facts = loaded(run("verify", store, "--json").stdout)
    assert facts["ok"] is False and facts["sessions"]["s-0"] == [] and facts["sessions"]["s-1"]


def test_verify_finds_changed_line_and_missing_header(run: Run, make_store: Store) -> None:
    store = make_store("logs", sessions=3)
    changed = store / "s-1.jsonl"
    changed.write_text(changed.read_text().replace("berth 3", "berth 9", 1))
    headless = store / "s-2.jsonl"
    headless.write_text(headless.read_text().partition("\n")[2])
    result = run("verify", store)
    assert result.exit_code == 1
    assert "s-1: " in result.stdout
    assert "s-2.jsonl: does not start with a session header" in result.stdout
    assert result.stderr == ""


def test_verify_reports_damaged_database(run: Run, make_store: Store) -> None:
    store = make_store("agent.db")
    data = store.read_bytes()
    store.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    result = run("verify", store)
    assert result.exit_code == 1
    assert "damaged" in result.stdout


def test_session_list_is_limited(run: Run, make_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store("agent.db", sessions=5, messages=0)
    monkeypatch.setattr("holdfast.cli.inspect.MAX_LISTED_SESSIONS", 2)
    out = run("inspect", store).stdout
    assert "5 sessions" in out and "and 3 older sessions" in out and "s-0" not in out
    assert len(loaded(run("inspect", store, "--json").stdout)["sessions"]) == 5
