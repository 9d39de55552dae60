"""`holdfast import`: files and folders; a failure is reported and does not stop the others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, claude_code, codex, conversation, loaded, pi, write_json, write_lines
from cli_home import make_home

from holdfast.transcripts import live_context, read_transcript


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_home(tmp_path, monkeypatch)


@pytest.fixture
def store(home: Path) -> Path:
    """The default store."""
    return home / "data" / "holdfast" / "sessions.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session of every tool, and files without sessions."""
    folder = tmp_path / "sessions"
    (folder / "-harbor-tidebook").mkdir(parents=True)
    write_lines(folder / "-harbor-tidebook" / "s-1.jsonl", claude_code())
    write_lines(folder / "rollout.jsonl", codex())
    write_lines(folder / "pi.jsonl", pi())
    write_json(folder / "chat.json", conversation("openai-chat", 8))
    write_json(folder / "package.json", {"name": "tidebook"})
    write_lines(folder / "empty.jsonl", [{"type": "summary", "summary": "a title", "leafUuid": "x"}] * 2)
    (folder / "notes.md").write_text("no session")
    return folder


def context(run: Run, store: Path, id: str) -> list[object]:
    messages: list[object] = loaded(run("compact", store, "--session", id, "--json").stdout)["messages"]
    return messages


def test_import_session_into_default_store(run: Run, store: Path, folder: Path) -> None:
    file = folder / "-harbor-tidebook" / "s-1.jsonl"
    result = run("import", file)
    assert result.exit_code == 0
    assert f"s-1  claude-code, 5 messages, 1 compaction  {file}\n" in result.stdout
    assert f"1 imported into sqlite:///{store}, 0 already there, 0 failed." in result.stdout
    assert context(run, store, "s-1") == live_context(read_transcript(file)).messages
    assert run("verify", store).exit_code == 0


def test_uuids_are_shortened_for_people_and_whole_for_programs(run: Run, store: Path, folder: Path) -> None:
    ids = ["123e4567-e89b-42d3-a456-426614174000", "223e4567-e89b-42d3-a456-426614174111"]
    for id in ids:
        shown = run("import", folder / "chat.json", "--id", id).stdout
        assert f"{id[-6:]}  messages" in shown and id not in shown
    found = run("search", "question", store).stdout
    assert "session 174000" in found and ids[0] not in found
    assert ids[0] in run("search", "question", store, "--json").stdout
    assert "174111  already there" in run("import", folder / "chat.json", "--id", ids[1]).stdout


def test_import_folder(run: Run, store: Path, folder: Path) -> None:
    facts = loaded(run("import", folder, "--json").stdout)
    kinds = {one["kind"]: one["id"] for one in facts["files"] if one["outcome"] == "imported"}
    assert set(kinds) == {"claude-code", "codex", "pi", "messages"}
    assert sorted(Path(one["file"]).name for one in facts["files"] if one["outcome"] == "passed over") == [
        "empty.jsonl",
        "package.json",
    ]
    assert (facts["failed"], facts["store"]) == (0, f"sqlite:///{store}")
    assert loaded(run("verify", store, "--json").stdout)["sessions"] == {id: [] for id in kinds.values()}


def test_import_opencode_storage(run: Run, store: Path, tmp_path: Path) -> None:
    storage = tmp_path / "opencode" / "storage"
    info = {"id": "ses_1", "projectID": "p", "time": {"created": 1}}
    write = {
        "session/p/ses_1.json": info,
        "message/ses_1/msg_1.json": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1}},
        "part/msg_1/prt_1.json": {"id": "prt_1", "messageID": "msg_1", "type": "text", "text": "Where is berth 4?"},
        "project/p.json": {"id": "p"},
    }
    for name, value in write.items():
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        write_json(storage / name, value)
    (one,) = loaded(run("import", storage.parent, "--json").stdout)["files"]
    assert (one["kind"], one["id"], one["messages"]) == ("opencode", "ses_1", 1)
    assert "berth 4" in run("search", "berth 4", store).stdout


def test_import_prints_notes_on_omissions(run: Run, tmp_path: Path) -> None:
    records = [*claude_code(), {"type": "system", "subtype": "turn_duration", "uuid": "t", "sessionId": "s-1"}]
    assert (
        "\n    1 record of type 'system/turn_duration' left out\n"
        in run("import", write_lines(tmp_path / "s.jsonl", records)).stdout
    )


def test_import_bad_file_does_not_stop_the_others(run: Run, folder: Path, tmp_path: Path) -> None:
    broken = folder / "a-broken.jsonl"
    broken.write_text('{"type": "user"}\n{"type": \n{"type": "user"}\n')
    gone = tmp_path / "gone.jsonl"
    result = run("import", gone, folder)
    assert result.exit_code == 1
    assert f"holdfast: There is no file {gone}: check the path.\n" in result.stderr
    assert f"holdfast: Line 2 of {broken} is not complete JSON" in result.stderr
    assert "4 imported into" in result.stdout and "0 already there, 2 failed." in result.stdout
    assert "2 files skipped: no session in them." in result.stdout


def test_import_twice_writes_nothing(run: Run, store: Path, folder: Path) -> None:
    run("import", folder)
    before = store.read_bytes()
    result = run("import", folder)
    assert result.exit_code == 0
    assert "0 imported into" in result.stdout and "4 already there, 0 failed." in result.stdout
    assert store.read_bytes() == before
    again = loaded(run("import", folder / "pi.jsonl", "--json").stdout)["files"][0]
    assert again["outcome"] == "there" and "use another --id" in again["why"]


def test_import_with_id(run: Run, store: Path, folder: Path) -> None:
    run("import", folder / "pi.jsonl")
    assert run("import", folder / "pi.jsonl", "--id", "mine").exit_code == 0
    assert context(run, store, "mine") == context(run, store, "s-3")


def test_import_of_diverged_session_fails(run: Run, folder: Path, tmp_path: Path) -> None:
    run("import", folder / "pi.jsonl", "--id", "mine")
    result = run("import", folder / "rollout.jsonl", folder / "chat.json", "--store", tmp_path / "logs")
    assert result.exit_code == 0 and (tmp_path / "logs" / "s-2.jsonl").is_file()
    result = run("import", folder / "rollout.jsonl", "--id", "mine")
    assert result.exit_code == 2 and "already exists, and is a different one" in result.stderr


@pytest.mark.parametrize("place", ["agent.db", "logs", "sqlite:///{}/other.db", "jsonl:{}/more"])
def test_import_into_named_store(place: str, run: Run, folder: Path, store: Path, tmp_path: Path) -> None:
    where = place.format(tmp_path) if "{}" in place else str(tmp_path / place)
    assert run("import", folder / "pi.jsonl", "--store", where).exit_code == 0
    assert run("verify", where).exit_code == 0
    assert not store.exists()
    assert run("import", folder / "pi.jsonl", HOLDFAST_STORE=where).stdout.count("already there") == 2


def test_import_of_export_is_lossless(run: Run, folder: Path, store: Path, tmp_path: Path) -> None:
    run("import", folder / "-harbor-tidebook" / "s-1.jsonl")
    out = tmp_path / "s-1.holdfast.jsonl"
    run("export", "s-1", "-o", out)
    other = tmp_path / "other.db"
    (one,) = loaded(run("import", out, "--store", other, "--json").stdout)["files"]
    assert (one["kind"], one["id"], one["messages"], one["compactions"]) == ("holdfast", "s-1", 5, 1)
    assert context(run, other, "s-1") == context(run, store, "s-1")
    assert run("export", "s-1", "--store", other).stdout == out.read_text()


def test_import_progress_only_on_terminal(run: Run, folder: Path) -> None:
    assert run("import", folder).stderr == ""


def test_import_bad_input_is_one_line(refused: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    assert "There is no file" in refused("import", tmp_path / "gone.jsonl")
    assert "neither a session of Claude Code, Codex, pi or OpenCode" in refused("import", folder / "package.json")
    assert "holds no messages" in refused("import", folder / "empty.jsonl")
    assert "--id needs a single file, not 6" in refused("import", folder, "--id", "x")
    (tmp_path / "nothing").mkdir()
    assert "No session file in the folder" in refused("import", tmp_path / "nothing")
    assert "There is no store at" in refused("import", folder / "pi.jsonl", "--store", "redis:x")
    assert "Missing argument 'PATH...'" in refused("import")
    assert "A session id must not be empty" in refused("import", folder / "pi.jsonl", "--id", "")


def test_import_refuses_foreign_database(refused: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.db"
    with sqlite3.connect(stranger) as connection:
        connection.execute("CREATE TABLE boats (name)")
    connection.close()
    before = stranger.read_bytes()
    assert "not a Holdfast store" in refused("import", folder / "pi.jsonl", "--store", stranger)
    assert stranger.read_bytes() == before


def test_import_of_store_file_suggests_export(run: Run, refused: Callable[..., str], tmp_path: Path) -> None:
    run("import", write_lines(tmp_path / "pi.jsonl", pi()), "--store", tmp_path / "logs")
    error = refused("import", tmp_path / "logs" / "s-3.jsonl")
    assert f"holdfast export s-3 --store jsonl:{tmp_path / 'logs'}" in error


def test_import_completes_partial_export(run: Run, folder: Path, tmp_path: Path) -> None:
    run("import", folder / "pi.jsonl")
    data = run("export", "s-3").stdout
    cut = tmp_path / "cut.jsonl"
    cut.write_text(data[: data.rindex('{"id"') + 40])
    result = run("import", cut, "--store", tmp_path / "other.db")
    assert "1 torn last line left out" in result.stdout
    cut.write_text(data)
    assert run("import", cut, "--store", tmp_path / "other.db").exit_code == 0
    assert run("export", "--store", tmp_path / "other.db").stdout == data
    assert json.loads(data.splitlines()[-1])["kind"] == "message"
