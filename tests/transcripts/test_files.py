"""Session files: tool detection, encodings, and one clear error for each that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts.conftest import Read, Write

from holdfast.errors import InvalidInput, UnknownFormat
from holdfast.transcripts import read_transcript

HELLO = {"role": "user", "content": "hello"}
CLAUDE = {"type": "user", "uuid": "u", "sessionId": "s", "message": HELLO}
CODEX = {"type": "response_item", "payload": {"type": "message", **HELLO}}
PI = {"type": "message", "message": HELLO}


@pytest.mark.parametrize(
    ("record", "kind"), [(CLAUDE, "claude-code"), (CODEX, "codex"), (PI, "pi"), (HELLO, "messages")]
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt"])
def test_read_transcript_detects_the_tool(read: Read, record: dict[str, Any], kind: str, name: str) -> None:
    assert read(record, name=name).kind == kind
    assert read(record, record, name=name).kind == kind
    assert read([record], name=name).kind == kind


def test_read_transcript_accepts_a_string_path(write: Write) -> None:
    assert read_transcript(str(write(HELLO))).messages == [HELLO]


def test_read_transcript_pretty_printed_bom_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + json.dumps([HELLO], indent=2), encoding="utf-8")
    assert read_transcript(path).messages == [HELLO]
    path.write_text(json.dumps({"messages": [HELLO]}, indent=2))
    assert read_transcript(path).messages == [HELLO]
    path.write_text(f"\r\n{json.dumps(HELLO)}\r\n\r\n{json.dumps(HELLO)}\r\n")
    assert read_transcript(path).messages == [HELLO, HELLO]


@pytest.mark.parametrize("tail", ['{"role": "us', '{"role": "user", "content": "caf', "\0\0\0 {"])
def test_read_transcript_torn_last_line_is_counted(read: Read, tail: str) -> None:
    """P6: an append-only file may end in the middle of a record."""
    transcript = read(CLAUDE, tail=tail)
    assert len(transcript.entries) == 1
    assert transcript.warnings == ("1 torn last line left out",)


def test_read_transcript_last_line_torn_inside_a_character(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(HELLO).encode() + b'\n{"role": "user", "content": "caf\xc3')
    assert read_transcript(path).messages == [HELLO]


def test_read_transcript_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"role": "user", "content": "cut \\ud83d"}\n{"role": "user", "content": "\\ud83d\\ude00"}')
    transcript = read_transcript(path)
    assert [message["content"] for message in transcript.messages] == ["cut \ufffd", "\U0001f600"]
    assert transcript.warnings == ("1 record with half a character in it (replaced by U+FFFD)",)


LINE = json.dumps(CLAUDE).encode()
GZIP = gzip.compress(LINE)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"", "is empty: name", id="empty"),
        pytest.param(b" \n\n", "is empty: name", id="blank"),
        pytest.param(b"\x7fELF\x02\x01\x00\xff", "is a binary file: name", id="binary"),
        pytest.param(b"SQLite format 3\x00", "is a binary file: name", id="sqlite"),
        pytest.param(b"# notes\n", "is not JSON: name", id="text"),
        pytest.param(GZIP[:-9], "damaged or cut-off gzip: copy", id="torn gzip"),
        pytest.param(b'{"role": "user"', "breaks at line 1: save", id="torn object"),
        pytest.param(b'[\n{"role": "user"},\n{"role"', "breaks at line 3: save", id="torn list"),
        pytest.param(b'[\n{"a": "\xff"}\n]', "breaks at line 2: save", id="not UTF-8"),
        pytest.param(b"[" * 9_999, "breaks at line 1: save", id="nested too deep"),
        pytest.param(LINE + b'\n\n{"broken\n' + LINE, r"Line 3 of .* is not complete JSON: restore", id="middle"),
        pytest.param(b'{"broken\n' + LINE + b"\n" + LINE, r"Line 1 of .* is not complete JSON", id="first"),
        pytest.param(LINE + b"\n17\n" + LINE, r"Value 2 of .* is not a JSON object: each", id="number"),
        pytest.param(b"[]", "holds no messages: name", id="empty list"),
        pytest.param(b'{"messages": []}', "holds no messages: name", id="empty body"),
        pytest.param(b'{"type": "session", "cwd": "/", "id": "x"}', "holds no messages: name", id="only a header"),
    ],
)
def test_read_transcript_bad_file_gives_one_sentence(tmp_path: Path, data: bytes, error: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match=error) as raised:
        read_transcript(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", [{"name": "a-package", "type": "module"}, [{"a": 1}], {}, {"messages": "none"}])
def test_read_transcript_other_json_is_refused(write: Write, value: Any) -> None:
    path = write(value)
    with pytest.raises(UnknownFormat, match="is JSON, but neither a session") as raised:
        read_transcript(path)
    assert str(path) in str(raised.value)


def test_read_transcript_missing_file_folder_and_invalid_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file .*gone\.jsonl: check the path"):
        read_transcript(tmp_path / "gone.jsonl")
    with pytest.raises(InvalidInput, match="is a folder: name one session file in it"):
        read_transcript(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_transcript(tmp_path / ("x" * 5_000))
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_transcript("a\0b")


@pytest.mark.parametrize("odd", [None, 7, "x", [], [7], {}, {"a": []}])
@pytest.mark.parametrize("good", [CLAUDE, CODEX, PI], ids=["claude-code", "codex", "pi"])
def test_read_transcript_malformed_record_is_skipped(read: Read, good: dict[str, Any], odd: Any) -> None:
    """With any value in a field, the good records are read and only Holdfast's errors are raised."""
    fields = ("id", "uuid", "parentId", "parentUuid", "message", "payload", "timestamp", "subtype")
    records = [{**good, field: odd} for field in fields]
    compactions = [{"type": kind, "payload": odd, "summary": odd} for kind in ("compaction", "compacted")]
    assert read(good, *records, *compactions, good).entries


def test_read_transcript_unpacks_only_what_the_limit_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kilobytes that unpack to two megabytes; the limit may be raised."""
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(LINE + b"\n" + b" " * 2_000_000))
    monkeypatch.setenv("HOLDFAST_MAX_SESSION_BYTES", "1000000")
    with pytest.raises(InvalidInput, match="unpacks to more than 1,000,000 bytes: set HOLDFAST_MAX_SESSION_BYTES"):
        read_transcript(path)
    monkeypatch.setenv("HOLDFAST_MAX_SESSION_BYTES", "3000000")
    assert len(read_transcript(path).entries) == 1
    monkeypatch.setenv("HOLDFAST_MAX_SESSION_BYTES", "lots")
    with pytest.raises(InvalidInput, match="is a number of bytes, not 'lots'"):
        read_transcript(path)
