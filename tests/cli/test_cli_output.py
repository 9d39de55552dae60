"""`-o`: the same shape as the input, written atomically, never over a store."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_files import FORMATS, KEYS, Run, claude_code, codex, conversation, loaded, request, write_json, write_lines

from holdfast import check

Refused = Callable[..., str]
Store = Callable[..., Path]
SMALL = ("--budget", "12k")


@pytest.mark.parametrize("format", FORMATS)
def test_output_keeps_request_body(format: str, run: Run, tmp_path: Path) -> None:
    body = request(format)
    file, out = write_json(tmp_path / "in.json", body), tmp_path / "out.json"
    assert run("compact", file, *SMALL, "-o", out).exit_code == 0
    back = loaded(out)
    assert list(back) == list(body)
    assert {key: value for key, value in back.items() if key != KEYS[format]} == {
        key: value for key, value in body.items() if key != KEYS[format]
    }
    assert check(back[KEYS[format]], format) == []
    again = loaded(run("compact", out, *SMALL, "--json").stdout)
    assert (again["outcome"], again["messages"]) == ("not_needed", back[KEYS[format]])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format", FORMATS)
def test_output_keeps_list_or_lines(format: str, run: Run, tmp_path: Path) -> None:
    messages = conversation(format)
    as_list, as_lines = write_json(tmp_path / "a.json", messages), write_lines(tmp_path / "a.jsonl", messages)
    expected = loaded(run("compact", as_list, *SMALL, "--json").stdout)["messages"]
    run("compact", as_list, *SMALL, "-o", tmp_path / "b.json")
    run("compact", as_lines, *SMALL, "-o", tmp_path / "b.jsonl")
    assert loaded(tmp_path / "b.json") == expected
    assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == expected


def test_output_of_tool_session_is_request_body(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run("compact", write_lines(tmp_path / "claude.jsonl", claude_code()), "-o", out)
    assert list(loaded(out)) == ["model", "messages"]
    run("compact", write_lines(tmp_path / "codex.jsonl", codex()), "-o", out, "--force")
    back = loaded(out)
    assert (back["model"], back["instructions"]) == ("gpt-5", "be brief")
    assert check(back["input"], "openai-responses") == []


def test_json_omits_messages_written_to_file(run: Run, chat: Path, tmp_path: Path) -> None:
    facts = loaded(run("compact", chat, *SMALL, "--json", "-o", tmp_path / "out.json").stdout)
    assert facts["outcome"] == "compacted" and "messages" not in facts


def test_output_dash_writes_messages_to_stdout(run: Run, chat: Path) -> None:
    result = run("compact", chat, *SMALL, "-o", "-")
    assert check(loaded(result.stdout), "openai-chat") == []
    assert "Compacted:" in result.stderr
    result = run("compact", chat, *SMALL, "-o", "-", "--json")
    assert isinstance(loaded(result.stdout), list)
    assert loaded(result.stderr)["outcome"] == "compacted"


def test_output_is_written_for_every_outcome(run: Run, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "word " * 500}]
    file, out = write_json(tmp_path / "in.json", messages), tmp_path / "out.json"
    assert run("compact", file, "-o", out).exit_code == 0
    assert loaded(out) == messages
    out.unlink()
    assert run("compact", file, "--budget", "10", "-o", out).exit_code == 1
    assert loaded(out) == messages


def test_output_over_input_needs_force(run: Run, refused: Refused, chat: Path, tmp_path: Path) -> None:
    before = chat.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(chat)
    for name in (chat, link, tmp_path / "." / "chat.json"):
        assert "is the input file" in refused("compact", chat, *SMALL, "-o", name)
        assert chat.read_bytes() == before
    assert run("compact", chat, *SMALL, "-o", link, "--force").exit_code == 0
    assert link.is_symlink() and check(loaded(chat), "openai-chat") == []
    assert len(chat.read_bytes()) < len(before)


@pytest.mark.parametrize("name", ["agent.db", "logs"])
def test_output_never_overwrites_a_store(name: str, refused: Refused, make_store: Store, chat: Path) -> None:
    path = make_store(name)
    out = path if path.is_file() else path / "s-0.jsonl"
    before = out.read_bytes()
    assert "which is never overwritten" in refused("compact", path, "-o", out, "--force")
    assert "which is never overwritten" in refused("compact", chat, "-o", out, "--force")
    assert out.read_bytes() == before


def test_output_keeps_permissions_and_leaves_no_temporary_file(run: Run, chat: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    out = folder / "out.json"
    previous = os.umask(0o027)
    try:
        run("compact", chat, *SMALL, "-o", out)
    finally:
        os.umask(previous)
    assert out.stat().st_mode & 0o777 == 0o640
    out.chmod(0o604)
    run("compact", chat, *SMALL, "-o", out)
    assert out.stat().st_mode & 0o777 == 0o604
    assert os.listdir(folder) == ["out.json"]


def test_output_failed_write_keeps_old_file(
    refused: Refused, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr("holdfast.cli.sources.os.fsync", fail)
    assert "No space left on device" in refused("compact", chat, *SMALL, "--force", "-o", out)
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["chat.json", "out.json"]


def test_output_device_is_not_replaced(run: Run, chat: Path) -> None:
    assert run("compact", chat, *SMALL, "-o", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_output_gz_is_compressed(run: Run, chat: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json.gz"
    run("compact", chat, *SMALL, "-o", out)
    assert check(json.loads(gzip.decompress(out.read_bytes())), "openai-chat") == []


@pytest.mark.parametrize("where", ["missing/out.json", "", "/proc/out.json"])
def test_output_invalid_path_is_refused(where: str, refused: Refused, chat: Path, tmp_path: Path) -> None:
    refused("compact", chat, *SMALL, "-o", tmp_path / where)
    assert os.listdir(tmp_path) == ["chat.json"]


def test_output_without_permission_is_refused(
    refused: Refused, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    out.chmod(0o444)
    monkeypatch.setattr("holdfast.cli.sources.os.access", lambda path, mode: False)  # root may write anything
    assert "is not writable" in refused("compact", chat, *SMALL, "-o", out)
    assert out.read_text() == "old"
