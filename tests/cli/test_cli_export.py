"""`holdfast export`: sessions for stores, tools and programs; nothing is overwritten by accident."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import Run, conversation, loaded
from cli_home import make_home

from holdfast.transcripts import live_context, read_transcript

Store = Callable[..., Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_home(tmp_path, monkeypatch)


def test_export_writes_file_atomically(run: Run, make_store: Store, tmp_path: Path) -> None:
    store, out = make_store("agent.db"), tmp_path / "s.jsonl"
    result = run("export", "s-0", "--store", store, "-o", out)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"s-0 written to {out}\n")
    records = [loaded(line) for line in out.read_text().splitlines()]
    assert records[0]["kind"] == "session" and records[0]["id"] == "s-0"
    assert [record["kind"] for record in records[1:]].count("compaction") == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".holdfast")] == []


def test_export_without_session_is_newest(run: Run, make_store: Store) -> None:
    result = run("export", "--store", make_store("agent.db", sessions=3))
    assert result.stderr == "holdfast: no session was named: exporting the newest, s-2.\n"
    assert loaded(result.stdout.splitlines()[0])["id"] == "s-2"


def test_export_uses_store_in_settings(run: Run, make_store: Store) -> None:
    assert run("export", "s-0", HOLDFAST_STORE=str(make_store("logs"))).exit_code == 0


def test_export_as_messages(run: Run, make_store: Store) -> None:
    store = make_store("agent.db")
    context = loaded(run("export", "s-0", "--store", store, "--format", "messages").stdout)
    assert context == loaded(run("compact", store, "--json").stdout)["messages"]
    whole = loaded(run("export", "s-0", "--store", store, "--format", "messages", "--whole").stdout)
    assert whole == [*conversation("openai-chat", 80), {"role": "user", "content": "And then?"}]


def test_export_as_pi_session(run: Run, make_store: Store, tmp_path: Path) -> None:
    store, out = make_store("agent.db"), tmp_path / "pi.jsonl.gz"
    assert run("export", "s-0", "--store", store, "--format", "pi", "-o", out).exit_code == 0
    assert gzip.decompress(out.read_bytes()).startswith(b'{"type":"session","version":3,"id":"s-0"')
    read = read_transcript(out)
    context = loaded(run("export", "s-0", "--store", store, "--format", "messages").stdout)
    assert (read.kind, len(read.compactions)) == ("pi", 1)
    assert live_context(read).messages[0]["content"] == context[0]["content"]
    assert live_context(read).messages[-1]["content"] == [{"type": "text", "text": "And then?"}]


def test_export_existing_file_needs_force(
    run: Run, refused: Callable[..., str], make_store: Store, tmp_path: Path
) -> None:
    store, out = make_store("agent.db"), tmp_path / "s.jsonl"
    out.write_text("mine")
    assert f"{out} already exists: choose another output file, or use --force." in refused(
        "export", "s-0", "--store", store, "-o", out
    )
    assert out.read_text() == "mine"
    assert run("export", "s-0", "--store", store, "-o", out, "--force").exit_code == 0
    first = out.read_text()
    assert run("export", "s-0", "--store", store, "-o", out, "--force").exit_code == 0
    assert out.read_text() == first != "mine"


def test_export_never_overwrites_a_store(refused: Callable[..., str], make_store: Store) -> None:
    logs = make_store("logs")
    before = (logs / "s-0.jsonl").read_bytes()
    assert "which is never overwritten" in refused(
        "export", "s-0", "--store", logs, "-o", logs / "s-0.jsonl", "--force"
    )
    store = make_store("agent.db")
    assert "which is never overwritten" in refused("export", "s-0", "--store", store, "-o", store, "--force")
    assert (logs / "s-0.jsonl").read_bytes() == before


def test_export_bad_input_is_one_line(refused: Callable[..., str], make_store: Store, home: Path) -> None:
    store = make_store("agent.db")
    assert "has the id or prefix 'gone'" in refused("export", "gone", "--store", store)
    assert "'pie' is not a format: did you mean 'pi'?" in refused("export", "--store", store, "--format", "pie")
    assert "leave out whole" in refused("export", "s-0", "--store", store, "--whole")
    for gone in ((), ("--store", home / "gone.db"), ("--store", f"jsonl:{home / 'gone'}")):
        error = refused("export", *gone)
        assert "There is no store at" in error
        assert "import a session or chat first, or name another with --store." in error
    assert not (home / "data").exists(), "looking for a store does not make one"
    assert "does not exist: create it" in refused("export", "s-0", "--store", store, "-o", home / "no" / "where.jsonl")


def test_export_empty_store_is_refused(refused: Callable[..., str], make_store: Store) -> None:
    assert "holds no session yet" in refused("export", "--store", make_store("agent.db", sessions=0))
